// What every source shares. T: elements; A: the type of sums.
typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;

// i runs over [0, n), spread over all threads of the grid
#define FOR_EACH(i, n) \
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)

struct Add { __device__ static A of(A a, A b) { return a + b; } };
struct Larger { __device__ static A of(A a, A b) { return a < b ? b : a; } };

// The reduction of every thread's value, for all threads of a block of a power of two threads, 1024 at most.
template <class Op>
__device__ A over_block(A value) {
    __shared__ A part[1024];
    __syncthreads();
    part[threadIdx.x] = value;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] = Op::of(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    return part[0];
}
