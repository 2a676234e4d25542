// Statistics and affine maps per channel. An element lies at (n, channel, i): n * C * inner + channel * inner + i, or with
// `last` n * inner * C + i * C + channel.
// sizes: mean C, variance C, factor C, shift C, inverse C, plain C, crossed C, scale C, y count
// sizes of channel_moments: x N * C * inner
// sizes of channel_affine: x count
// sizes of channel_grad_sums: x N * C * inner, dy N * C * inner
// sizes of channel_grad: x count, dy count, dx count

__device__ i64 place(i64 n, i64 channel, i64 i, i64 C, i64 inner, int last) {
    return last ? (n * inner + i) * C + channel : (n * C + channel) * inner + i;
}

__device__ i64 channel_of(i64 element, i64 C, i64 inner, int last) { return last ? element % C : element / inner % C; }

// Mean and biased variance of each channel, one block per channel.
extern "C" __global__ void channel_moments(
    const T* x, A* mean, A* variance, i64 N, i64 C, i64 inner, int last) {
    for (i64 channel = blockIdx.x; channel < C; channel += gridDim.x) {
        A total = A(0.), squares = A(0.);
        for (i64 k = threadIdx.x; k < N * inner; k += blockDim.x)
            total += A(x[place(k / inner, channel, k % inner, C, inner, last)]);
        A center = over_block<Add>(total) / A(N * inner);
        for (i64 k = threadIdx.x; k < N * inner; k += blockDim.x) {
            A away = A(x[place(k / inner, channel, k % inner, C, inner, last)]) - center;
            squares += away * away;
        }
        squares = over_block<Add>(squares) / A(N * inner);
        if (threadIdx.x == 0) {
            mean[channel] = center;
            variance[channel] = squares;
        }
    }
}

// y = x * factor + shift
extern "C" __global__ void channel_affine(
    const T* x, const A* factor, const A* shift, T* y, i64 count, i64 C, i64 inner, int last) {
    FOR_EACH(i, count) {
        i64 channel = channel_of(i, C, inner, last);
        y[i] = T(A(x[i]) * factor[channel] + shift[channel]);
    }
}

// Sums of dy and of dy xhat over each channel: the gradients of bias and scale.
extern "C" __global__ void channel_grad_sums(
    const T* x, const T* dy, const A* mean, const A* inverse, A* plain, A* crossed, i64 N, i64 C, i64 inner, int last) {
    for (i64 channel = blockIdx.x; channel < C; channel += gridDim.x) {
        A a = A(0.), b = A(0.);
        for (i64 k = threadIdx.x; k < N * inner; k += blockDim.x) {
            i64 i = place(k / inner, channel, k % inner, C, inner, last);
            A g = A(dy[i]);
            a += g;
            b += g * (A(x[i]) - mean[channel]) * inverse[channel];
        }
        a = over_block<Add>(a);
        b = over_block<Add>(b);
        if (threadIdx.x == 0) {
            plain[channel] = a;
            crossed[channel] = b;
        }
    }
}

// dx of a norm whose statistics are those of x: inverse scale (dy - mean(dy) - xhat mean(dy xhat)).
extern "C" __global__ void channel_grad(
    const T* x, const T* dy, const A* mean, const A* inverse, const A* scale, const A* plain, const A* crossed, T* dx,
    i64 count, i64 C, i64 inner, int last) {
    const A m = A(count / C);
    FOR_EACH(i, count) {
        i64 channel = channel_of(i, C, inner, last);
        A xhat = (A(x[i]) - mean[channel]) * inverse[channel];
        A g = A(dy[i]) - plain[channel] / m - xhat * crossed[channel] / m;
        dx[i] = T(g * inverse[channel] * (scale ? scale[channel] : A(1.)));
    }
}
