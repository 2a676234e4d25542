/* Filters out of the blocks that oneDNN computes their gradients in, [O / 16, I / 16, window, 16 of I, 16 of O], in the
   program's order [O, I, window]. oneDNN's own copy takes twice as long: it scatters single numbers over memory. */

#include "native.h"
#include "pool.h"

#include <stdint.h>
#include <string.h>

#define SIDE 16
#define WINDOW 64 /* the largest */

struct filter {
    int64_t outputs, inputs, window;
    const float *blocked;
    float *plain;
};

#ifdef POOL
#include <immintrin.h>

/* A row of whole cache lines, past the caches: it is read when all others have been written. */
INLINE void put(float *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i += 4)
        _mm_stream_ps(to + i, _mm_load_ps(from + i));
}
#else
INLINE void put(float *to, const float *from, int64_t count) { memcpy(to, from, count * sizeof(float)); }
#endif

/* Blocks number `begin` to `end` - 1. window: that of the filter, a constant where it is a usual one. */
INLINE void copy(const struct filter *f, int64_t begin, int64_t end, int64_t window)
{
    float row[SIDE * WINDOW] __attribute__((aligned(64)));
    int64_t across = f->inputs / SIDE;
    for (int64_t block = begin; block < end; block++) {
        const float *from = f->blocked + block * SIDE * SIDE * window;
        float *to = f->plain + ((block / across * SIDE) * f->inputs + block % across * SIDE) * window;
        for (int64_t o = 0; o < SIDE; o++) {
            for (int64_t i = 0; i < SIDE; i++)
                for (int64_t k = 0; k < window; k++)
                    row[i * window + k] = from[(k * SIDE + i) * SIDE + o];
            put(to + o * f->inputs * window, row, SIDE * window);
        }
    }
}

static void share(void *data)
{
    const struct filter *f = data;
    int64_t blocks = f->outputs / SIDE * (f->inputs / SIDE), number = pool_number(), parts = pool_count();
    int64_t begin = blocks * number / parts, end = blocks * (number + 1) / parts;
    if (f->window == 9)
        copy(f, begin, end, 9);
    else if (f->window == 1)
        copy(f, begin, end, 1);
    else
        copy(f, begin, end, f->window);
#ifdef POOL
    _mm_sfence();
#endif
}

/* Both numbers of channels are multiples of 16, and `plain` begins with a cache line. Returns 0, or 1 for a window that
   is too large. */
EXPORTED int64_t oprack_plain_filter(struct filter *filter, int64_t threads)
{
    if (filter->window > WINDOW)
        return 1;
    pool_run(share, filter, threads);
    return 0;
}
