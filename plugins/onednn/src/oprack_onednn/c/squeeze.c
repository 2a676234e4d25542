/* Squeeze and excitation: the mean of each channel of an image, and two small products of it with what follows them.
   Nothing is made for a shape. Sums go over blocks of pixels first, so that rounding errors do not pile up, and the
   numbers are the same with any number of threads, which take shares of the blocks. */

#include "functions.h"
#include "native.h"
#include "pool.h"

#include <stddef.h>
#include <stdint.h>

#define BLOCK 64 /* pixels */
#define LANES 16
#define SHARED (1 << 15) /* numbers from which on a second thread is worth its call */

/* The fields are those of kernels/squeeze_excite.py, in its order. functions: what follows the first product, then what
   follows the second one. */
struct squeeze {
    int64_t images, pixels, channels, reduced, outputs;
    int64_t biased[2], counts[2];
    struct function functions[];
};

struct job {
    const struct squeeze *settings;
    const float *images, *reduce, *reduce_bias, *expand, *expand_bias;
    float *sums, *results;
};

INLINE int64_t blocks_of(const struct squeeze *s) { return (s->pixels + BLOCK - 1) / BLOCK; }

/* sums = the sums over `count` pixels. */
INLINE void add_up(const float *from, int64_t count, int64_t channels, float *sums)
{
    int64_t i = count % 4;
    for (int64_t c = 0; c < channels; c++)
        sums[c] = 0.0f;
    for (int64_t j = 0; j < i; j++, from += channels)
        APART
        for (int64_t c = 0; c < channels; c++)
            sums[c] += from[c];
    for (; i < count; i += 4, from += 4 * channels) {
        const float *second = from + channels, *third = second + channels, *fourth = third + channels;
        APART
        for (int64_t c = 0; c < channels; c++)
            sums[c] += (from[c] + second[c]) + (third[c] + fourth[c]);
    }
}

/* out = weights x + bias. */
INLINE void multiply(const float *weights, const float *x, const float *bias, int64_t rows, int64_t inner, float *out)
{
    for (int64_t j = 0; j < rows; j++, weights += inner) {
        float lanes[LANES] = {0}, sum = bias ? bias[j] : 0.0f;
        int64_t i = 0;
        for (; i + LANES <= inner; i += LANES)
            for (int64_t l = 0; l < LANES; l++)
                lanes[l] += weights[i + l] * x[i + l];
        for (int64_t l = 0; i < inner; i++, l++)
            lanes[l] += weights[i] * x[i];
        for (int64_t half = LANES / 2; half; half /= 2)
            for (int64_t l = 0; l < half; l++)
                lanes[l] += lanes[l + half];
        out[j] = sum + lanes[0];
    }
}

INLINE void share_sums(const struct job *job)
{
    const struct squeeze *s = job->settings;
    const int64_t blocks = blocks_of(s), total = s->images * blocks;
    const int64_t number = pool_number(), count = pool_count();
    for (int64_t i = total * number / count; i < total * (number + 1) / count; i++) {
        const int64_t first = i % blocks * BLOCK, left = s->pixels - first;
        const float *from = job->images + (i / blocks * s->pixels + first) * s->channels;
        add_up(from, left < BLOCK ? left : BLOCK, s->channels, job->sums + i * s->channels);
    }
}

INLINE void share_products(const struct job *job)
{
    const struct squeeze *s = job->settings;
    const int64_t blocks = blocks_of(s);
    for (int64_t image = pool_number(); image < s->images; image += pool_count()) {
        float *mean = job->sums + image * blocks * s->channels, *results = job->results + image * s->outputs;
        float *reduced = job->sums + s->images * blocks * s->channels + image * s->reduced;
        for (int64_t block = 1; block < blocks; block++)
            APART
            for (int64_t c = 0; c < s->channels; c++)
                mean[c] += mean[block * s->channels + c];
        for (int64_t c = 0; c < s->channels; c++)
            mean[c] /= (float)s->pixels;
        multiply(job->reduce, mean, job->reduce_bias, s->reduced, s->channels, reduced);
        for (int64_t i = 0; i < s->counts[0]; i++)
            apply(s->functions + i, reduced, s->reduced);
        multiply(job->expand, reduced, job->expand_bias, s->outputs, s->reduced, results);
        for (int64_t i = 0; i < s->counts[1]; i++)
            apply(s->functions + s->counts[0] + i, results, s->outputs);
    }
}

static void sums_narrow(void *job) { share_sums(job); }
static void products_narrow(void *job) { share_products(job); }
static WIDE void sums_wide(void *job) { share_sums(job); }
static WIDE void products_wide(void *job) { share_products(job); }

/* memory: images, in channels-last memory; weights and bias of the first product, and of the second one, of which a
   bias may be absent; results; scratch memory for the sums of all blocks and the first product. */
EXPORTED int oprack_squeeze(const void *settings, void *const *memory, int64_t threads)
{
    const struct squeeze *s = settings;
    const int64_t numbers = s->images * s->pixels * s->channels;
    struct job job = {.settings = s, .images = *memory++};
    job.reduce = *memory++;
    job.reduce_bias = s->biased[0] ? *memory++ : NULL;
    job.expand = *memory++;
    job.expand_bias = s->biased[1] ? *memory++ : NULL;
    job.results = *memory++;
    job.sums = *memory;
    threads = numbers < SHARED ? 1 : threads;
    pool_run(HAS_WIDE ? sums_wide : sums_narrow, &job, threads);
    pool_run(HAS_WIDE ? products_wide : products_narrow, &job, threads < s->images ? threads : s->images);
    return 0;
}
