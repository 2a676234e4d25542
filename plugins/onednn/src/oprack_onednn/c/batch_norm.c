/* batch_norm with the statistics of the batch, and its gradient, for numbers of channels that oneDNN has no fast
   implementation for: rows of some channels, which lie one behind the other.

   A period is so many rows that whole vectors fill it. Sums are taken for each place of a period, then for each channel:
   vectors go over memory whatever the number of channels. The work is cut into shares of so few periods that float32
   adds them up without loss, and the sums of shares are added in double; how many there are is left to the caller, not
   to the number of threads, so results are the same for any. */

#include "native.h"
#include "pool.h"

#include <math.h>
#include <stdint.h>

enum phase { MEAN, SPREAD, RESULT, SUMS, GRADIENT };

/* count: of elements. period: elements of one. mean to inverse: by channel, results of the way forward, of which the way
   back reads mean and inverse. y: on the way back the gradient of x. work: 4 periods for what holds for the whole, 2 for
   sums in double, and 2 for the sums of each share. */
struct norm {
    int64_t count, channels, period, shares, threads, phase;
    const float *x, *dy, *scale, *shift;
    float *mean, *variance, *inverse, *y, *dscale, *dshift, *work;
    double epsilon;
};

INLINE void work_on(const struct norm *n, int64_t begin, int64_t end, float *sums)
{
    const float *a = n->work, *b = a + n->period, *c = b + n->period, *d = c + n->period;
    float *more = sums + n->period;
    int64_t summed = n->phase == SUMS ? 2 * n->period : n->phase == MEAN || n->phase == SPREAD ? n->period : 0;
    for (int64_t j = 0; j < summed; j++)
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
            /* a: mean; b and c: factors; d: what follows from the sum of dy */
            APART
            for (int64_t j = 0; j < some; j++)
                y[j] = b[j] * dy[j] - c[j] * (x[j] - a[j]) - d[j];
        }
    }
}

static void narrow(const struct norm *n, int64_t begin, int64_t end, float *sums) { work_on(n, begin, end, sums); }

static WIDE void wide(const struct norm *n, int64_t begin, int64_t end, float *sums) { work_on(n, begin, end, sums); }

/* Share `number`, in whole periods. */
static void part(const struct norm *n, int64_t number)
{
    int64_t periods = (n->count + n->period - 1) / n->period;
    int64_t begin = periods * number / n->shares * n->period, end = periods * (number + 1) / n->shares * n->period;
    float *sums = n->work + (6 + 2 * number) * n->period;
    if (end > n->count)
        end = n->count;
    (HAS_WIDE ? wide : narrow)(n, begin, end, sums);
}

/* Each thread takes shares that lie one behind the other. */
static void share(void *data)
{
    const struct norm *n = data;
    int64_t number = pool_number(), threads = pool_count();
    for (int64_t i = n->shares * number / threads; i < n->shares * (number + 1) / threads; i++)
        part(n, i);
}

static void run(struct norm *n, int phase)
{
    n->phase = phase;
    pool_run(share, n, n->threads);
}

/* The sums by channel, those of its places in a period, of all shares; they stay until the next ones are asked for.
   second: which ones of two. */
static const double *totals(const struct norm *n, int second)
{
    double *sums = (double *)(n->work + 4 * n->period);
    for (int64_t j = 0; j < n->period; j++)
        sums[j] = 0;
    for (int64_t i = 0; i < n->shares; i++) {
        const float *of_share = n->work + (6 + 2 * i + second) * n->period;
        APART
        for (int64_t j = 0; j < n->period; j++)
            sums[j] += of_share[j];
    }
    for (int64_t j = n->channels; j < n->period; j += n->channels)
        for (int64_t k = 0; k < n->channels; k++)
            sums[k] += sums[j + k];
    return sums;
}

static void spread(const struct norm *n, float *target, int64_t c, double value)
{
    for (int64_t j = c; j < n->period; j += n->channels)
        target[j] = (float)value;
}

EXPORTED void oprack_batch_norm(struct norm *n, int64_t back)
{
    float *a = n->work, *b = a + n->period, *c = b + n->period, *d = c + n->period;
    double rows = (double)(n->count / n->channels);
    const double *sums;
    if (!back) {
        run(n, MEAN);
        sums = totals(n, 0);
        for (int64_t k = 0; k < n->channels; k++)
            spread(n, a, k, n->mean[k] = (float)(sums[k] / rows));
        run(n, SPREAD);
        sums = totals(n, 0);
        for (int64_t k = 0; k < n->channels; k++) {
            n->variance[k] = (float)(sums[k] / rows);
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
    sums = totals(n, 0);
    for (int64_t k = 0; k < n->channels; k++) {
        n->dshift[k] = (float)sums[k];
        spread(n, d, k, (double)n->scale[k] * n->inverse[k] * n->dshift[k] / rows);
    }
    sums = totals(n, 1);
    for (int64_t k = 0; k < n->channels; k++) {
        double factor = (double)n->scale[k] * n->inverse[k], found = sums[k] * n->inverse[k];
        n->dscale[k] = (float)found;
        spread(n, b, k, factor);
        spread(n, c, k, factor * n->inverse[k] * found / rows);
    }
    run(n, GRADIENT);
}
