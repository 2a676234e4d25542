// hash_embedding and its gradient; T, the type of the table, is defined before this text.

typedef unsigned long long u64;
typedef long long i64;

__device__ static i64 row_of(i64 id, i64 number, i64 rows) {
    u64 z = (u64)id + (u64)number * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (i64)((z ^ (z >> 31)) % (u64)rows);
}

extern "C" __global__ void gather(
    const i64* ids, const T* table, T* out, i64 size, i64 rows, i64 width, i64 hashes) {
    i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= size) return;
    i64 i = k / width, c = k % width;
    T sum = 0;
    for (i64 number = 1; number <= hashes; ++number) sum += table[row_of(ids[i], number, rows) * width + c];
    out[k] = sum;
}

extern "C" __global__ void scatter(
    const i64* ids, const T* grads, T* table, i64 size, i64 rows, i64 width, i64 hashes) {
    i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= size) return;
    i64 i = k / width, c = k % width;
    for (i64 number = 1; number <= hashes; ++number)
        atomicAdd(&table[row_of(ids[i], number, rows) * width + c], grads[k]);
}
