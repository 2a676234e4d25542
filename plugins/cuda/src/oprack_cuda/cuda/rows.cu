// Rows of tables.
// sizes: table rows * width, ids n, out n * width, values n * width, gradient rows * width

// out[i] = table[ids[i]], 0 for the padding id (padding -1: none); width elements per row.
// An id outside the table reads nothing and gives 0.
extern "C" __global__ void look_up(const T* table, const i64* ids, T* out, i64 n, i64 width, i64 rows, i64 padding) {
    FOR_EACH(i, n * width) {
        i64 id = ids[i / width];
        bool known = id >= 0 && id < rows && id != padding;
        out[i] = known ? table[id * width + i % width] : T(0.f);
    }
}

// gradient[ids[i]] += values[i] unless the id is the padding's; atomic, so the order of the sums varies.
extern "C" __global__ void add_rows(const T* values, const i64* ids, A* gradient, i64 n, i64 width, i64 rows, i64 padding) {
    FOR_EACH(i, n * width) {
        i64 id = ids[i / width];
        if (id >= 0 && id < rows && id != padding) atomicAdd(&gradient[id * width + i % width], A(values[i]));
    }
}
