// Updates of parameters in one pass. P: the parameter or its master copy in A; G: its gradient in T. One-element
// tensors (learning rate, powers) are read on the device.
// sizes: P n, G n, V n, M1 n, M2 n, out n, velocity n, m1 n, m2 n, rounded n, rate 1, power1 1, power2 1

__device__ A decayed(A p, A rate, double coefficient) { return p * (A(1.) - rate * A(coefficient)); }

extern "C" __global__ void sgd(const A* P, const T* G, const A* rate, A* out, T* rounded, i64 n) {
    FOR_EACH(i, n) {
        A value = P[i] - rate[0] * A(G[i]);
        out[i] = value;
        if (rounded) rounded[i] = T(value);
    }
}

extern "C" __global__ void momentum(
    const A* P, const T* G, const A* V, const A* rate, A* out, A* velocity, T* rounded, i64 n, double mu, int nesterov,
    double l2, double rescale) {
    FOR_EACH(i, n) {
        A p = P[i], g = A(G[i]) * A(rescale) + A(l2) * p, v = V[i] * A(mu) + g;
        A value = p - (nesterov ? g + v * A(mu) : v) * rate[0];
        out[i] = value;
        velocity[i] = v;
        if (rounded) rounded[i] = T(value);
    }
}

// decay: of adamw, 0 for adam. rate_ratio: adamw's lr_ratio.
extern "C" __global__ void adam(
    const A* P, const T* G, const A* M1, const A* M2, const A* rate, const A* power1, const A* power2, A* out, A* m1,
    A* m2, T* rounded, i64 n, double beta1, double beta2, double epsilon, double rate_ratio, double decay) {
    FOR_EACH(i, n) {
        A step = rate[0] * A(rate_ratio), g = A(G[i]);
        A p = decay != 0 ? decayed(P[i], step, decay) : P[i];
        A first = M1[i] * A(beta1) + g * A(1 - beta1), second = M2[i] * A(beta2) + g * g * A(1 - beta2);
        A correction = sqrt(A(1.) - power2[0]);
        A value = p - first / (sqrt(second) + A(epsilon) * correction) * (step * correction / (A(1.) - power1[0]));
        out[i] = value;
        m1[i] = first;
        m2[i] = second;
        if (rounded) rounded[i] = T(value);
    }
}
