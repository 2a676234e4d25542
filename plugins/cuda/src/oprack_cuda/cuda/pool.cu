// Pooling of images. Window (i, j) covers rows from[0][i] to to[0][i] and columns from[1][j] to to[1][j], inside the image;
// size[0][i] * size[1][j] is what an average divides by. Images have strides of their own, in elements.
// sizes: dims 6, strides 4

__device__ i64 at(const i64* stride, i64 n, i64 c, i64 h, i64 w) {
    return n * stride[0] + c * stride[1] + h * stride[2] + w * stride[3];
}

// Row and column of the first largest element of a window; -1 for an empty one.
__device__ i64 first_largest(const T* plane, i64 sh, i64 sw, i64 h0, i64 h1, i64 w0, i64 w1, i64 width) {
    i64 best = -1;
    A top = A(0.);
    for (i64 h = h0; h < h1; h++)
        for (i64 w = w0; w < w1; w++) {
            A value = A(plane[h * sh + w * sw]);
            if (best < 0 || value > top) {
                top = value;
                best = h * width + w;
            }
        }
    return best;
}

// dims: n, c, h, w of x, then rows and columns of y. strides: four of x, then four of y.
extern "C" __global__ void pool(
    const T* x, T* y, const i64* dims, const i64* strides, const i64* row_from, const i64* row_to, const double* row_size,
    const i64* col_from, const i64* col_to, const double* col_size, int is_max) {
    i64 C = dims[1], W = dims[3], rows = dims[4], cols = dims[5], count = dims[0] * C * rows * cols;
    FOR_EACH(i, count) {
        i64 col = i % cols, row = i / cols % rows, c = i / cols / rows % C, n = i / cols / rows / C;
        const T* plane = x + at(strides, n, c, 0, 0);
        T result;
        if (is_max) {
            i64 best = first_largest(
                plane, strides[2], strides[3], row_from[row], row_to[row], col_from[col], col_to[col], W);
            result = best < 0 ? T(A(-3.402823466e+38)) : plane[best / W * strides[2] + best % W * strides[3]];
        } else {
            A total = A(0.);
            for (i64 h = row_from[row]; h < row_to[row]; h++)
                for (i64 w = col_from[col]; w < col_to[col]; w++) total += A(plane[h * strides[2] + w * strides[3]]);
            result = T(total / A(row_size[row] * col_size[col]));
        }
        y[at(strides + 4, n, c, row, col)] = result;
    }
}

// Each element of dx gathers from the windows that it is in, rows_in[2 h] to rows_in[2 h + 1] and the same for columns,
// so nothing is added atomically. x: for max only, laid out as dx.
extern "C" __global__ void pool_grad(
    const T* x, const T* dy, T* dx, const i64* dims, const i64* strides, const i64* row_from, const i64* row_to,
    const double* row_size, const i64* col_from, const i64* col_to, const double* col_size, const i64* rows_in,
    const i64* cols_in) {
    i64 C = dims[1], H = dims[2], W = dims[3], count = dims[0] * C * H * W;
    FOR_EACH(i, count) {
        i64 w = i % W, h = i / W % H, c = i / W / H % C, n = i / W / H / C;
        i64 start = at(strides, n, c, 0, 0), here = start + h * strides[2] + w * strides[3];
        A total = A(0.);
        for (i64 row = rows_in[2 * h]; row < rows_in[2 * h + 1]; row++)
            for (i64 col = cols_in[2 * w]; col < cols_in[2 * w + 1]; col++) {
                A flow = A(dy[at(strides + 4, n, c, row, col)]);
                if (x) {
                    i64 best = first_largest(
                        x + start, strides[2], strides[3], row_from[row], row_to[row], col_from[col], col_to[col], W);
                    total += best == h * W + w ? flow : A(0.);
                } else {
                    total += flow / A(row_size[row] * col_size[col]);
                }
            }
        dx[here] = T(total);
    }
}
