/* Transforms of Winograd's F(4x4, 3x3): tiles of images into what is multiplied, and products into results.

   Images and results are in channels-last memory, and what lies between is [36, tiles, channels]. Each channel of a tile
   is transformed alone, so vectors of 16 channels are, of which there are at least so many; the points are 0, +-5/8, +-3/2 and infinity (ops/winograd_conv2d.py),
   whose pairs share the even and the odd part of a polynomial. Threads take shares of the tiles. */

#define _GNU_SOURCE
#include "native.h"
#include "pool.h"

#include <stdint.h>
#include <string.h>

#ifdef POOL

#define TILE 6
#define RESULTS 4
#define LANES 16

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t mask __attribute__((vector_size(4 * LANES)));

/* Of both transforms; the fields are those of kernels/winograd_conv2d.py, in its order. */
struct tiling {
    int64_t images, channels, height, width; /* of what is read or written */
    int64_t top, left;                       /* zeros before an image */
    int64_t first, rows, columns;            /* tiles: the first row, and how many there are */
    int64_t plane;                           /* rows of each of the 36 matrices: tiles, and some that nobody reads */
    int64_t biased, added;                   /* whether there is a bias; 1 + whether the relu comes first, for a sum */
    int64_t relu;                            /* whether negative results become 0 */
};

struct job {
    const struct tiling *tiling;
    void *const *memory;
};

INLINE void load(vec *x, const float *from) { memcpy(x, from, sizeof(vec)); }

INLINE void store(float *to, const vec *x) { memcpy(to, x, sizeof(vec)); }

/* x where it is not below 0; NaN stays. */
INLINE void relu(vec *x)
{
    mask below = *x < (vec){0};
    *x = (vec)(~below & (mask)*x);
}

/* Six pixels in a row into six values. */
INLINE void forth(const vec *d, vec *v)
{
    vec even = d[4] - 2.25f * d[2], odd = 0.625f * d[3] - 1.40625f * d[1];
    vec even2 = d[4] - 0.390625f * d[2], odd2 = 1.5f * d[3] - 0.5859375f * d[1];
    v[0] = 0.87890625f * d[0] - 2.640625f * d[2] + d[4];
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = even2 + odd2;
    v[4] = even2 - odd2;
    v[5] = 0.87890625f * d[1] - 2.640625f * d[3] + d[5];
}

/* Six values into four results in a row. */
INLINE void back(const vec *m, vec *y)
{
    vec sum = m[1] + m[2], difference = m[1] - m[2], sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    y[0] = m[0] + sum + sum2;
    y[1] = 0.625f * difference + 1.5f * difference2;
    y[2] = 0.390625f * sum + 2.25f * sum2;
    y[3] = 0.244140625f * difference + 3.375f * difference2 + m[5];
}

/* 16 channels of one tile whose first pixel is in row y and column x of an image; whole: all of it lies inside. */
INLINE void tile_forth(const struct tiling *t, const float *image, int64_t y, int64_t x, float *to, int whole)
{
    int64_t step = t->plane * t->channels;
    vec rows[TILE][TILE], d[TILE], v[TILE];
    UNROLL for (int i = 0; i < TILE; i++) {
        const float *row = image + ((y + i) * t->width + x) * t->channels;
        UNROLL for (int j = 0; j < TILE; j++) {
            if (whole || (y + i >= 0 && y + i < t->height && x + j >= 0 && x + j < t->width))
                load(d + j, row + j * t->channels);
            else
                d[j] = (vec){0};
        }
        forth(d, rows[i]);
    }
    UNROLL for (int j = 0; j < TILE; j++) {
        UNROLL for (int i = 0; i < TILE; i++)
            d[i] = rows[i][j];
        forth(d, v);
        UNROLL for (int i = 0; i < TILE; i++)
            store(to + (i * TILE + j) * step, v + i);
    }
}

/* 16 channels of one tile whose first result is in row y and column x; whole: all of it lies inside. */
INLINE void tile_back(const struct tiling *t, const float *from, const float *bias, const float *added, int64_t y,
                      int64_t x, float *image, int whole)
{
    int64_t step = t->plane * t->channels;
    vec rows[TILE][RESULTS], m[TILE], v[RESULTS], plus = (vec){0}, other;
    if (bias)
        load(&plus, bias);
    UNROLL for (int i = 0; i < TILE; i++) {
        UNROLL for (int j = 0; j < TILE; j++)
            load(m + j, from + (i * TILE + j) * step);
        back(m, rows[i]);
    }
    UNROLL for (int j = 0; j < RESULTS; j++) {
        if (!whole && x + j >= t->width)
            break;
        UNROLL for (int i = 0; i < TILE; i++)
            m[i] = rows[i][j];
        back(m, v);
        UNROLL for (int i = 0; i < RESULTS; i++) {
            int64_t place = ((y + i) * t->width + x + j) * t->channels;
            if (!whole && y + i >= t->height)
                break;
            v[i] += plus;
            if (added) {
                if (t->added > 1)
                    relu(v + i);
                load(&other, added + place);
                v[i] += other;
            }
            if (t->relu)
                relu(v + i);
            store(image + place, v + i);
        }
    }
}

/* The tiles of the calling thread's share, in the order of images, rows and columns. */
#define EACH_TILE(t, image, y, x, number)                                                                              \
    int64_t all = (t)->images * (t)->rows * (t)->columns, shares = pool_count(), own = pool_number();                  \
    for (int64_t number = all * own / shares, end = all * (own + 1) / shares; number < end; number++)                  \
        for (int64_t image = number / ((t)->rows * (t)->columns), once = 1,                                            \
                     y = ((t)->first + number / (t)->columns % (t)->rows) * RESULTS,                                   \
                     x = number % (t)->columns * RESULTS;                                                              \
             once; once = 0)

/* Where the vector after that at channel c begins. The last one is moved to where it is full, over the one before. */
INLINE int64_t vector(int64_t channels, int64_t *c)
{
    int64_t next = *c + LANES;
    if (next > channels)
        *c = channels - LANES;
    return next;
}

INLINE void share_forth(const struct job *job)
{
    const struct tiling *t = job->tiling;
    const float *images = job->memory[0];
    float *to = job->memory[1];
    EACH_TILE(t, image, y, x, number)
    {
        const float *from = images + image * t->height * t->width * t->channels;
        int64_t high = y - t->top, left = x - t->left;
        int whole = high >= 0 && left >= 0 && high + TILE <= t->height && left + TILE <= t->width;
        for (int64_t c = 0, next; c < t->channels; c = next) {
            next = vector(t->channels, &c);
            float *tiles = to + number * t->channels + c;
            if (whole)
                tile_forth(t, from + c, high, left, tiles, 1);
            else
                tile_forth(t, from + c, high, left, tiles, 0);
        }
    }
    /* rows that nobody reads are multiplied as well: what happened to lie there could be slow to compute with */
    for (int64_t i = 0; own == 0 && i < TILE * TILE; i++)
        memset(to + (i * t->plane + all) * t->channels, 0, (size_t)((t->plane - all) * t->channels) * sizeof(float));
}

INLINE void share_back(const struct job *job)
{
    const struct tiling *t = job->tiling;
    void *const *memory = job->memory;
    const float *products = memory[0];
    const float *bias = t->biased ? memory[1] : NULL, *added = t->added ? memory[1 + t->biased] : NULL;
    float *results = memory[1 + t->biased + (t->added != 0)];
    EACH_TILE(t, image, y, x, number)
    {
        int64_t offset = image * t->height * t->width * t->channels;
        int whole = y + RESULTS <= t->height && x + RESULTS <= t->width;
        for (int64_t c = 0, next; c < t->channels; c = next) {
            next = vector(t->channels, &c);
            const float *from = products + number * t->channels + c;
            const float *row = bias ? bias + c : NULL, *sum = added ? added + offset + c : NULL;
            if (whole)
                tile_back(t, from, row, sum, y, x, results + offset + c, 1);
            else
                tile_back(t, from, row, sum, y, x, results + offset + c, 0);
        }
    }
}

#define SHARES(isa, options)                                                                                           \
    __attribute__((target(options))) static void forth_##isa(void *job) { share_forth(job); }                          \
    __attribute__((target(options))) static void back_##isa(void *job) { share_back(job); }

SHARES(avx512, "avx512f,fma")
SHARES(avx2, "avx2,fma")

#ifndef HAS_AVX512
#define HAS_AVX512 __builtin_cpu_supports("avx512f")
#endif

static int run(share_function function, const void *settings, void *const *memory, int64_t threads)
{
    struct job job = {settings, memory};
    pool_run(function, &job, threads);
    return 0;
}

EXPORTED int oprack_winograd_serves(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

/* memory: the images, the tiles. */
EXPORTED int oprack_winograd_forth(const void *settings, void *const *memory, int64_t threads)
{
    return run(HAS_AVX512 ? forth_avx512 : forth_avx2, settings, memory, threads);
}

/* memory: the products; the bias and what is added, where there are; the results. */
EXPORTED int oprack_winograd_back(const void *settings, void *const *memory, int64_t threads)
{
    return run(HAS_AVX512 ? back_avx512 : back_avx2, settings, memory, threads);
}

#else

EXPORTED int oprack_winograd_serves(void) { return 0; }

UNSERVED(oprack_winograd_forth)
UNSERVED(oprack_winograd_back)

#endif
