/* batch_norm with the statistics of the batch, and its gradient, for numbers of channels that oneDNN has no fast
   implementation for: rows of some channels, which lie one behind the other.

   A period is so many rows that whole vectors fill it. Sums are taken for each place of a period, then for each channel:
   vectors go over memory whatever the number of channels. */

#include "_native.h"
#include "_pool.h"

#include <math.h>
#include <stdint.h>

enum phase { MEAN, SPREAD, RESULT, SUMS, GRADIENT };

/* count: of elements. period: elements of one. mean to inverse: by channel, results of the way forward, of which the way
   back reads mean and inverse. y: on the way back the gradient of x. work: 3 periods for what holds for the whole, and 2
   for each thread. */
struct norm {
    int64_t count, channels, period, threads, phase;
    const float *x, *dy, *scale, *shift;
    float *mean, *variance, *inverse, *y, *dscale, *dshift, *work;
    double epsilon;
};

INLINE void work_on(const struct norm *n, int64_t begin, int64_t end, float *sums)
{
    const float *a = n->work, *b = a + n->period, *c = b + n->period;
    float *more = sums + n->period;
    for (int64_t j = 0; n->phase != RESULT && n->phase != GRADIENT && j < 2 * n->period; j++)
        sums[j] = 0;
    for (int64_t at = begin; at < end; at += n->period) {
        const float *x = n->x + at, *dy = n->dy ? n->dy + at : x;
        float *y = n->y + at;
        int64_t some = end - at < n->period ? end - at : n->period;
        switch (n->phase) {
        case MEAN:
            APART
            for (int64_t j = 0; j < some; j++)
                sums[j] += x[j];
            break;
        case SPREAD:
            APART
            for (int64_t j = 0; j < some; j++)
                sums[j] += (x[j] - a[j]) * (x[j] - a[j]);
            break;
        case RESULT:
            APART
            for (int64_t j = 0; j < some; j++)
                y[j] = (x[j] - a[j]) * b[j] + c[j];
            break;
        case SUMS:
            APART
            for (int64_t j = 0; j < some; j++) {
                sums[j] += dy[j];
                more[j] += dy[j] * (x[j] - a[j]);
            }
            break;
        case GRADIENT:
            /* a: mean; b and c: factors, the sum of dy is within those of c's period */
            APART
            for (int64_t j = 0; j < some; j++)
                y[j] = b[j] * dy[j] - c[j] * (x[j] - a[j]) - more[j];
        }
    }
}

static void narrow(const struct norm *n, int64_t begin, int64_t end, float *sums) { work_on(n, begin, end, sums); }

#ifdef POOL
static __attribute__((target("avx2"))) void wide(const struct norm *n, int64_t begin, int64_t end, float *sums)
{
    work_on(n, begin, end, sums);
}
#endif

/* The share of thread `number` of `threads`, in whole periods. */
static void part(const struct norm *n, int64_t number, int64_t threads)
{
    int64_t periods = (n->count + n->period - 1) / n->period;
    int64_t begin = periods * number / threads * n->period, end = periods * (number + 1) / threads * n->period;
    float *sums = n->work + (3 + 2 * number) * n->period;
    if (end > n->count)
        end = n->count;
#ifdef POOL
    if (__builtin_cpu_supports("avx2")) {
        wide(n, begin, end, sums);
        return;
    }
#endif
    narrow(n, begin, end, sums);
}

#ifdef POOL
/* There may be fewer threads than shares. */
static void share(void *data)
{
    const struct norm *n = data;
    for (int64_t i = pool_number(); i < n->threads; i += pool_count())
        part(n, i, n->threads);
}
#endif

static void run(struct norm *n, int phase)
{
    n->phase = phase;
#ifdef POOL
    pool_start(share, n, (unsigned)n->threads);
    share(n);
    pool_end();
#else
    for (int64_t i = 0; i < n->threads; i++)
        part(n, i, n->threads);
#endif
}

/* The sum of channel c: those of its places in a period, of all threads. */
static double total(const struct norm *n, int64_t c, int second)
{
    double sum = 0;
    for (int64_t i = 0; i < n->threads; i++) {
        const float *sums = n->work + (3 + 2 * i + second) * n->period;
        for (int64_t j = c; j < n->period; j += n->channels)
            sum += sums[j];
    }
    return sum;
}

static void spread(const struct norm *n, float *target, int64_t c, double value)
{
    for (int64_t j = c; j < n->period; j += n->channels)
        target[j] = (float)value;
}

EXPORTED void oprack_batch_norm(struct norm *n, int64_t back)
{
    float *a = n->work, *b = a + n->period, *c = b + n->period;
    double rows = (double)(n->count / n->channels);
    if (!back) {
        run(n, MEAN);
        for (int64_t k = 0; k < n->channels; k++)
            spread(n, a, k, n->mean[k] = (float)(total(n, k, 0) / rows));
        run(n, SPREAD);
        for (int64_t k = 0; k < n->channels; k++) {
            n->variance[k] = (float)(total(n, k, 0) / rows);
            n->inverse[k] = (float)(1 / sqrt(n->variance[k] + n->epsilon));
            spread(n, b, k, n->scale[k] * n->inverse[k]);
            spread(n, c, k, n->shift[k]);
        }
        run(n, RESULT);
        return;
    }
    for (int64_t k = 0; k < n->channels; k++)
        spread(n, a, k, n->mean[k]);
    run(n, SUMS);
    for (int64_t k = 0; k < n->channels; k++) {
        double factor = (double)n->scale[k] * n->inverse[k], found = total(n, k, 1) * n->inverse[k];
        n->dshift[k] = (float)total(n, k, 0);
        n->dscale[k] = (float)found;
        spread(n, b, k, factor);
        spread(n, c, k, factor * n->inverse[k] * found / rows);
        for (int64_t i = 0; i < n->threads; i++) /* where each thread reads it, in place of its sums */
            spread(n, n->work + (4 + 2 * i) * n->period, k, factor * n->dshift[k] / rows);
    }
    run(n, GRADIENT);
}
