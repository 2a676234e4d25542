// Gates of recurrent cells, one time step of n sequences with D units each.
// sizes: h_prev n * D, h n * D, reset n * D, dh n * D, dh_next later * D, dc_next later * D, d_reset n * D, dh_prev n * D,
//   c_prev n * D, c n * D, c_act n * D, dc_prev n * D, peepholes 3 * D
// sizes of gru_gates: gates 3 * n * D, product 2 * n * D
// sizes of gru_output: gates 3 * n * D, product n * D
// sizes of gru_grad_candidate: gates 3 * n * D, d_gates 3 * n * D
// sizes of gru_grad_gates: gates 3 * n * D, d_gates 3 * n * D
// sizes of lstm_step: gates 4 * n * D, product 4 * n * D
// sizes of lstm_grad: gates 4 * n * D, d_gates 4 * n * D
// sizes of rnn_step: pre n * D, product n * D, bias D, mask n, out n * D, kept n * D

enum Activation { IDENTITY = 0, SIGMOID = 1, TANH = 2, RELU = 3 };

__device__ A activate(A x, int kind) {
    if (kind == SIGMOID) return A(1.) / (A(1.) + exp(-x));
    if (kind == TANH) return tanh(x);
    if (kind == RELU) return x > A(0.) ? x : A(0.);
    return x;
}

// By the activation's value.
__device__ A slope(A y, int kind) {
    if (kind == SIGMOID) return y * (A(1.) - y);
    if (kind == TANH) return A(1.) - y * y;
    if (kind == RELU) return y > A(0.) ? A(1.) : A(0.);
    return A(1.);
}

// GRU. gates [n, 3 D] hold u, r, c before their activations and, in the end, after. product [n, 2 D]: what h_prev adds
// to u and r. reset [n, D] = r h_prev. h_prev, product may be null: the first step without an initial state.
extern "C" __global__ void gru_gates(T* gates, const T* product, const T* h_prev, T* reset, i64 n, i64 D, int gate) {
    FOR_EACH(i, n * D) {
        i64 row = i / D, at = i % D, u = row * 3 * D + at, r = u + D, p = row * 2 * D + at;
        A update = A(gates[u]), keep = A(gates[r]);
        if (product) {
            update += A(product[p]);
            keep += A(product[p + D]);
        }
        gates[u] = T(activate(update, gate));
        keep = activate(keep, gate);
        gates[r] = T(keep);
        if (h_prev) reset[i] = T(keep * A(h_prev[i]));
    }
}

// product [n, D]: what reset adds to c.
extern "C" __global__ void gru_output(
    T* gates, const T* product, const T* h_prev, T* h, i64 n, i64 D, int candidate, int origin_mode) {
    FOR_EACH(i, n * D) {
        i64 u = i / D * 3 * D + i % D, c = u + 2 * D;
        A now = activate(A(gates[c]) + (product ? A(product[i]) : A(0.)), candidate);
        gates[c] = T(now);
        A update = A(gates[u]), before = h_prev ? A(h_prev[i]) : A(0.);
        h[i] = T(origin_mode ? update * before + (A(1.) - update) * now : update * now + (A(1.) - update) * before);
    }
}

// d_gates' part of c, and dh += what flows back from the next step (the first `later` rows); dh is kept for gru_grad_gates.
extern "C" __global__ void gru_grad_candidate(
    const T* gates, const T* dh_next, T* dh, T* d_gates, i64 n, i64 later, i64 D, int candidate, int origin_mode) {
    FOR_EACH(i, n * D) {
        i64 u = i / D * 3 * D + i % D, c = u + 2 * D;
        A flow = A(dh[i]);
        if (i < later * D) flow += A(dh_next[i]);
        dh[i] = T(flow);
        A update = A(gates[u]), now = A(gates[c]);
        d_gates[c] = T(flow * (origin_mode ? A(1.) - update : update) * slope(now, candidate));
    }
}

// d_gates' parts of u and r, and dh_prev without what flows through the gates' product.
extern "C" __global__ void gru_grad_gates(
    const T* gates, const T* h_prev, const T* dh, const T* d_reset, T* d_gates, T* dh_prev, i64 n, i64 D, int gate,
    int origin_mode) {
    FOR_EACH(i, n * D) {
        i64 u = i / D * 3 * D + i % D, r = u + D, c = r + D;
        A update = A(gates[u]), keep = A(gates[r]), now = A(gates[c]), before = A(h_prev[i]);
        A flow = A(dh[i]), back = A(d_reset[i]);
        d_gates[u] = T(flow * (origin_mode ? before - now : now - before) * slope(update, gate));
        d_gates[r] = T(back * before * slope(keep, gate));
        dh_prev[i] = T(flow * (origin_mode ? update : A(1.) - update) + back * keep);
    }
}

// LSTM. gates [n, 4 D]: c', i, f, o before their activations, then after. product [n, 4 D]: what h_prev adds.
// peepholes [3 D]: of i, f, o, or null. c_prev may be null. clip: bound of c, 0 for none.
extern "C" __global__ void lstm_step(
    T* gates, const T* product, const T* c_prev, const T* peepholes, T* c, T* c_act, T* h, i64 n, i64 D, int gate,
    int candidate, int cell, double clip) {
    FOR_EACH(i, n * D) {
        i64 at = i % D, first = i / D * 4 * D + at;
        A value[4];
        for (int k = 0; k < 4; k++) value[k] = A(gates[first + k * D]) + (product ? A(product[first + k * D]) : A(0.));
        A before = c_prev ? A(c_prev[i]) : A(0.);
        if (peepholes && c_prev) {
            value[1] += before * A(peepholes[at]);
            value[2] += before * A(peepholes[D + at]);
        }
        value[0] = activate(value[0], candidate);
        value[1] = activate(value[1], gate);
        value[2] = activate(value[2], gate);
        A state = value[1] * value[0] + (c_prev ? value[2] * before : A(0.));
        if (clip > 0) state = state < A(-clip) ? A(-clip) : state > A(clip) ? A(clip) : state;
        if (peepholes) value[3] += state * A(peepholes[2 * D + at]);
        value[3] = activate(value[3], gate);
        for (int k = 0; k < 4; k++) gates[first + k * D] = T(value[k]);
        A shown = activate(state, cell);
        c[i] = T(state);
        c_act[i] = T(shown);
        h[i] = T(value[3] * shown);
    }
}

// d_gates before the activations, and dc_prev. dh, dc: of this step; dh_next, dc_next: what flows back from the next
// one (the first `later` rows).
extern "C" __global__ void lstm_grad(
    const T* gates, const T* c_prev, const T* c, const T* c_act, const T* dh, const T* dh_next, const T* dc_next,
    const T* peepholes, T* d_gates, T* dc_prev, i64 n, i64 later, i64 D, int gate, int candidate, int cell,
    double clip) {
    FOR_EACH(i, n * D) {
        i64 at = i % D, first = i / D * 4 * D + at;
        A now = A(gates[first]), in = A(gates[first + D]), forget = A(gates[first + 2 * D]);
        A out = A(gates[first + 3 * D]), shown = A(c_act[i]), flow = A(dh[i]), d_cell = A(0.);
        if (i < later * D) {
            flow += A(dh_next[i]);
            d_cell = A(dc_next[i]);
        }
        A d_out = flow * shown * slope(out, gate);
        d_cell += flow * out * slope(shown, cell);
        if (peepholes) d_cell += d_out * A(peepholes[2 * D + at]);
        if (clip > 0 && fabs(A(c[i])) >= A(clip)) d_cell = A(0.);
        A d_in = d_cell * now * slope(in, gate), d_forget = d_cell * A(c_prev[i]) * slope(forget, gate);
        d_gates[first] = T(d_cell * in * slope(now, candidate));
        d_gates[first + D] = T(d_in);
        d_gates[first + 2 * D] = T(d_forget);
        d_gates[first + 3 * D] = T(d_out);
        A back = d_cell * forget;
        if (peepholes) back += d_in * A(peepholes[at]) + d_forget * A(peepholes[D + at]);
        dc_prev[i] = T(back);
    }
}

// One step of op rnn. pre [n, G D]: of the input, with its bias. product [n, G D]: of h_prev; bias [G D]: of the states.
// mode: 0 tanh, 1 relu (G = 1), 2 LSTM (G = 4: i, f, c', o), 3 GRU (G = 3: r, z, n). mask [n]: 0 past the end of a
// sequence, or null. kept [n, K D]: what the gradient needs, out last, or null.
extern "C" __global__ void rnn_step(
    const T* pre, const T* product, const T* bias, const T* h_prev, const T* c_prev, const unsigned char* mask, T* out,
    T* h, T* c, T* kept, i64 n, i64 D, int mode) {
    const i64 G = mode == 2 ? 4 : mode == 3 ? 3 : 1, K = mode == 2 ? 6 : mode == 3 ? 5 : 1;
    FOR_EACH(i, n * D) {
        i64 row = i / D, at = i % D, g = row * G * D + at, k = row * K * D + at;
        bool inside = !mask || mask[row];
        A before = A(h_prev[i]), now;
        if (mode == 2) {
            A gate[4];
            for (int j = 0; j < 4; j++) {
                A value = A(pre[g + j * D]) + A(product[g + j * D]) + A(bias[j * D + at]);
                gate[j] = activate(value, j == 2 ? TANH : SIGMOID);
            }
            A state = gate[1] * A(c_prev[i]) + gate[0] * gate[2];
            now = gate[3] * tanh(state);
            c[i] = inside ? T(state) : c_prev[i];
            if (kept) {
                for (int j = 0; j < 4; j++) kept[k + j * D] = T(gate[j]);
                kept[k + 4 * D] = T(state);
            }
        } else if (mode == 3) {
            A r = activate(A(pre[g]) + A(product[g]) + A(bias[at]), SIGMOID);
            A z = activate(A(pre[g + D]) + A(product[g + D]) + A(bias[D + at]), SIGMOID);
            A q = A(product[g + 2 * D]) + A(bias[2 * D + at]), fresh = tanh(A(pre[g + 2 * D]) + r * q);
            now = fresh + z * (before - fresh);
            if (kept) {
                kept[k] = T(r);
                kept[k + D] = T(z);
                kept[k + 2 * D] = T(fresh);
                kept[k + 3 * D] = T(q);
            }
        } else {
            now = activate(A(pre[g]) + A(product[g]) + A(bias[at]), mode == 0 ? TANH : RELU);
        }
        out[i] = inside ? T(now) : T(A(0.));
        h[i] = inside ? T(now) : h_prev[i];
        if (kept) kept[k + (K - 1) * D] = out[i];
    }
}
