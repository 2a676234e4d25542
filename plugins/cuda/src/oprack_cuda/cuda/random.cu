// Random numbers by Philox 4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011): element i
// depends on the seed and i alone, so any grid gives the same numbers.
// sizes: x n, out n, mask n, grad n

struct Four { u32 word[4]; };

__device__ Four philox(u64 counter, u64 seed) {
    u32 c[4] = {(u32)counter, (u32)(counter >> 32), 0u, 0u}, k0 = (u32)seed, k1 = (u32)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        u64 a = (u64)0xD2511F53u * c[0], b = (u64)0xCD9E8D57u * c[2];
        u32 c1 = c[1], c3 = c[3];
        c[0] = (u32)(b >> 32) ^ c1 ^ k0;
        c[1] = (u32)b;
        c[2] = (u32)(a >> 32) ^ c3 ^ k1;
        c[3] = (u32)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    Four found;
    for (int i = 0; i < 4; i++) found.word[i] = c[i];
    return found;
}

// In [0, 1), 53 bits of two words.
__device__ double unit(u32 high, u32 low) { return ((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0; }

extern "C" __global__ void uniform(T* out, i64 n, u64 seed, double low, double high) {
    FOR_EACH(i, n) {
        Four r = philox((u64)i, seed);
        T value = T(A(low + (high - low) * unit(r.word[0], r.word[1])));
        out[i] = A(value) >= A(high) && high > low ? T(A(low)) : value;  // rounding must not reach the bound
    }
}

// Box and Muller.
extern "C" __global__ void gaussian(T* out, i64 n, u64 seed, double mean, double deviation) {
    FOR_EACH(i, n) {
        Four r = philox((u64)i, seed);
        double radius = sqrt(-2.0 * log(1.0 - unit(r.word[0], r.word[1])));
        out[i] = T(A(mean + deviation * radius * cos(6.283185307179586477 * unit(r.word[2], r.word[3]))));
    }
}

// An element is kept with probability 1 - p, times `scale`; mask says which were. One draw serves four elements.
extern "C" __global__ void dropout(const T* x, T* out, unsigned char* mask, i64 n, u64 seed, double p, double scale) {
    const u64 limit = (u64)(p * 4294967296.0);
    FOR_EACH(block, (n + 3) / 4) {
        Four r = philox((u64)block, seed);
        for (int k = 0; k < 4 && 4 * block + k < n; k++) {
            i64 i = 4 * block + k;
            bool kept = r.word[k] >= limit;
            mask[i] = kept;
            out[i] = kept ? T(A(x[i]) * A(scale)) : T(A(0.));
        }
    }
}

extern "C" __global__ void dropout_grad(const T* grad, const unsigned char* mask, T* out, i64 n, double scale) {
    FOR_EACH(i, n) out[i] = mask[i] ? T(A(grad[i]) * A(scale)) : T(A(0.));
}
