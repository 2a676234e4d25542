/* Copies results of small convolutions to where they belong: each row and column of the target by an entry of a table.

   oneDNN can do the same by reorders, of which each serves one regular pattern of one size and is compiled for it; a
   map needs nine of them, and every new size of an image some hundred. */

#include "native.h"
#include "pool.h"
#include "spread.h"

#include <string.h>

/* Floats from which on a second thread is worth its call. */
#define SHARED 16384

struct job {
    const struct spread *spread;
    const float *from;
    float *to;
};

static void row(const struct spread *s, const float *from, float *to)
{
    for (int64_t i = 0; i < s->column_count; i++) {
        const int32_t *entry = s->columns + 4 * i;
        const float *source = from + entry[0] * s->column + entry[1] * s->column_result;
        float *target = to + entry[2] * s->width;
        int64_t count = entry[3] * s->width;
        if (s->adds)
            for (int64_t k = 0; k < count; k++)
                target[k] += source[k];
        else
            for (int64_t k = 0; k < count; k++)
                target[k] = source[k];
    }
}

/* The share of the calling thread. */
static void work(void *argument)
{
    const struct job *job = argument;
    const struct spread *s = job->spread;
    int64_t total = s->images * s->row_count, number = pool_number(), count = pool_count();
    for (int64_t i = total * number / count; i < total * (number + 1) / count; i++) {
        const int32_t *entry = s->rows + 4 * (i % s->row_count);
        int64_t image = i / s->row_count;
        const float *from = job->from + image * s->image + entry[0] * s->row + entry[1] * s->row_result;
        for (int32_t k = 0; k < entry[3]; k++)
            row(s, from + k * s->row_result, job->to + image * s->to_image + (entry[2] + k) * s->to_row);
    }
}

void spread_run(const struct spread *spread, const char *from, char *to, unsigned threads)
{
    struct job job = {spread, (const float *)(from + spread->from), (float *)(to + spread->to)};
    int64_t floats = spread->images * spread->row_count * spread->to_row;
    pool_run(work, &job, floats < SHARED ? 1 : threads);
}

/* The same for Python, which runs chains step by step where it does so once. */
EXPORTED void oprack_spread(const struct spread *spread, const char *from, char *to, int64_t threads)
{
    spread_run(spread, from, to, (unsigned)threads);
}
