// Sequences of rows: sequence s holds rows offsets[s] to offsets[s + 1], `width` elements each.
// sizes: offsets sequences + 1, index sequences * width, starts blocks, places blocks + 1
// sizes of sequence_pool: out sequences * width
// sizes of sequence_pool_grad: dy sequences * width
// sizes of sequence_pad: out sequences * longest * width, pad pad_width
// sizes of sequence_unpad: padded sequences * longest * width

enum Pool { SUM = 0, AVERAGE = 1, SQRT = 2, MAX = 3, FIRST = 4, LAST = 5 };

__device__ A pool_factor(int mode, i64 rows) {
    if (mode == AVERAGE) return A(1.) / A(rows);
    if (mode == SQRT) return A(1.) / sqrt(A(rows));
    return A(1.);
}

// out [sequences, width]; index: the row of each maximum, -1 in an empty sequence, for MAX only.
extern "C" __global__ void sequence_pool(
    const T* x, const i64* offsets, T* out, int* index, i64 sequences, i64 width, int mode, double pad) {
    FOR_EACH(i, sequences * width) {
        i64 s = i / width, column = i % width, from = offsets[s], to = offsets[s + 1];
        if (from == to) {
            out[i] = T(A(pad));
            if (mode == MAX && index) index[i] = -1;
            continue;
        }
        if (mode == FIRST || mode == LAST) {
            out[i] = x[(mode == FIRST ? from : to - 1) * width + column];
            continue;
        }
        A total = A(x[from * width + column]);
        i64 best = from;
        for (i64 row = from + 1; row < to; row++) {
            A value = A(x[row * width + column]);
            if (mode != MAX) {
                total += value;
            } else if (value > total) {
                total = value;
                best = row;
            }
        }
        out[i] = T(total * pool_factor(mode, to - from));
        if (mode == MAX && index) index[i] = (int)best;
    }
}

// dx [rows, width], every element written once.
extern "C" __global__ void sequence_pool_grad(
    const T* dy, const i64* offsets, const int* index, T* dx, i64 sequences, i64 width, int mode) {
    FOR_EACH(i, sequences * width) {
        i64 s = i / width, column = i % width, from = offsets[s], to = offsets[s + 1];
        A share = A(dy[i]) * (mode <= SQRT && to > from ? pool_factor(mode, to - from) : A(1.));
        for (i64 row = from; row < to; row++) {
            bool chosen = mode <= SQRT || (mode == MAX && index[i] == row) || (mode == FIRST && row == from) ||
                          (mode == LAST && row == to - 1);
            dx[row * width + column] = chosen ? T(share) : T(0.f);
        }
    }
}

// out [sequences, longest, width]; pad has one element (pad_width 1) or a row's.
extern "C" __global__ void sequence_pad(
    const T* x, const i64* offsets, const T* pad, T* out, i64 sequences, i64 longest, i64 width, i64 pad_width) {
    FOR_EACH(i, sequences * longest * width) {
        i64 column = i % width, step = i / width % longest, s = i / width / longest;
        i64 row = offsets[s] + step;
        out[i] = row < offsets[s + 1] ? x[row * width + column] : pad[pad_width == 1 ? 0 : column];
    }
}

// x [rows, width] from padded [sequences, longest, width].
extern "C" __global__ void sequence_unpad(
    const T* padded, const i64* offsets, T* x, i64 sequences, i64 longest, i64 width) {
    FOR_EACH(i, sequences * longest * width) {
        i64 column = i % width, step = i / width % longest, s = i / width / longest;
        i64 row = offsets[s] + step;
        if (row < offsets[s + 1]) x[row * width + column] = padded[i];
    }
}

// Row `at` of block b of out is row at of the rows from starts[b] of x; places[b]: where block b begins in out.
extern "C" __global__ void expand_rows(
    const T* x, const i64* starts, const i64* places, T* out, i64 blocks, i64 width) {
    for (i64 b = blockIdx.x; b < blocks; b += gridDim.x) {
        i64 elements = (places[b + 1] - places[b]) * width;
        for (i64 i = threadIdx.x; i < elements; i += blockDim.x) out[places[b] * width + i] = x[starts[b] * width + i];
    }
}

// One block per sequence of numbers.
extern "C" __global__ void sequence_softmax(const T* x, const i64* offsets, T* y, i64 sequences) {
    for (i64 s = blockIdx.x; s < sequences; s += gridDim.x) {
        i64 from = offsets[s], to = offsets[s + 1];
        if (from == to) continue;
        A top = A(x[from]), total = A(0.);
        for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) top = Larger::of(top, A(x[i]));
        top = over_block<Larger>(top);
        for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) total += exp(A(x[i]) - top);
        total = over_block<Add>(total);
        for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) y[i] = T(exp(A(x[i]) - top) / total);
    }
}

extern "C" __global__ void sequence_softmax_grad(
    const T* y, const T* dy, const i64* offsets, T* dx, i64 sequences) {
    for (i64 s = blockIdx.x; s < sequences; s += gridDim.x) {
        i64 from = offsets[s], to = offsets[s + 1];
        A inner = A(0.);
        for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) inner += A(y[i]) * A(dy[i]);
        inner = over_block<Add>(inner);
        for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) dx[i] = T(A(y[i]) * (A(dy[i]) - inner));
    }
}
