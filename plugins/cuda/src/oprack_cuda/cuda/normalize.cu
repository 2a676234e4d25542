// Rows of a matrix [rows, width], one block per row.
// sizes: x rows * width, y rows * width, dy rows * width, dx rows * width, scale width, bias width, mean rows,
//   variance rows

extern "C" __global__ void softmax(const T* x, T* y, i64 rows, i64 width) {
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
        const T* in = x + r * width;
        T* out = y + r * width;
        A top = A(in[0]), total = A(0.);
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) top = Larger::of(top, A(in[i]));
        top = over_block<Larger>(top);
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) total += exp(A(in[i]) - top);
        total = over_block<Add>(total);
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) out[i] = T(exp(A(in[i]) - top) / total);
    }
}

extern "C" __global__ void softmax_grad(const T* y, const T* dy, T* dx, i64 rows, i64 width) {
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
        i64 at = r * width;
        A inner = A(0.);
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) inner += A(y[at + i]) * A(dy[at + i]);
        inner = over_block<Add>(inner);
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) dx[at + i] = T(A(y[at + i]) * (A(dy[at + i]) - inner));
    }
}

// y = (x - mean) / std * scale + bias; mean and variance [rows] are kept in A. scale and bias may be null.
extern "C" __global__ void layer_norm(
    const T* x, const A* scale, const A* bias, T* y, A* mean, A* variance, i64 rows, i64 width, double epsilon) {
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
        const T* in = x + r * width;
        A total = A(0.), squares = A(0.);
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) total += A(in[i]);
        A center = over_block<Add>(total) / A(width);
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) squares += (A(in[i]) - center) * (A(in[i]) - center);
        A spread = over_block<Add>(squares) / A(width);
        A inverse = A(1.) / sqrt(spread + A(epsilon));
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) {
            A value = (A(in[i]) - center) * inverse;
            if (scale) value *= scale[i];
            if (bias) value += bias[i];
            y[r * width + i] = T(value);
        }
        if (threadIdx.x == 0) {
            mean[r] = center;
            variance[r] = spread;
        }
    }
}

// dx of layer_norm, from its mean and variance.
extern "C" __global__ void layer_norm_grad(
    const T* x, const T* dy, const A* scale, const A* mean, const A* variance, T* dx, i64 rows, i64 width,
    double epsilon) {
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
        i64 at = r * width;
        A inverse = A(1.) / sqrt(variance[r] + A(epsilon)), center = mean[r];
        A plain = A(0.), crossed = A(0.);
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) {
            A g = A(dy[at + i]) * (scale ? scale[i] : A(1.));
            plain += g;
            crossed += g * (A(x[at + i]) - center) * inverse;
        }
        plain = over_block<Add>(plain) / A(width);
        crossed = over_block<Add>(crossed) / A(width);
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) {
            A g = A(dy[at + i]) * (scale ? scale[i] : A(1.)), xhat = (A(x[at + i]) - center) * inverse;
            dx[at + i] = T(inverse * (g - plain - xhat * crossed));
        }
    }
}
