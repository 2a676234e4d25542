/* The gradient of a table: a matrix of zeros, to whose rows others are added in their order; and a step of sgd in the
   rows that a gradient lists. */

#include "exit.h"
#include "native.h"
#include "pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct rows {
    int64_t count, width, height;
    const int64_t *ids;
    const float *values;
    float *out;
    float rate;
};

/* The calling thread's rows of the matrix; an id that is none of them is another thread's. */
static void share(void *data)
{
    const struct rows *r = data;
    const int64_t width = r->width, number = pool_number(), parts = pool_count();
    const int64_t begin = r->height * number / parts, end = r->height * (number + 1) / parts;
    memset(r->out + begin * width, 0, (size_t)((end - begin) * width) * sizeof(float));
    for (int64_t i = 0; i < r->count; i++) {
        if (r->ids[i] < begin || r->ids[i] >= end)
            continue;
        const float *from = r->values + i * width;
        float *to = r->out + r->ids[i] * width;
        for (int64_t j = 0; j < width; j++)
            to[j] += from[j];
    }
}

EXPORTED void oprack_add_rows(struct rows *rows, int64_t threads)
{
    pool_run(share, rows, threads);
}

/* Where an id is, or may be put, in a table of `size` places, a power of two, in which some are free (-1). */
static int64_t place_of(const int64_t *places, int64_t size, const int64_t *ids, int64_t id)
{
    int64_t at = (int64_t)(((uint64_t)id * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (size - 1);
    while (places[at] >= 0 && ids[places[at]] != id)
        at = (at + 1) & (size - 1);
    return at;
}

static int64_t sgd_rows(struct rows *r)
{
    const int64_t count = r->count, width = r->width, *ids = r->ids;
    int64_t size = 16;
    while (size < 2 * count)
        size *= 2;
    /* places: the first row of each id; next: the row behind a row with its id, last: for first rows, the last such */
    int64_t *places = malloc((size_t)(size + 2 * count) * sizeof(int64_t)), *next = places + size, *last = next + count;
    float *total = malloc((size_t)width * sizeof(float));
    if (!places || !total) {
        free(places);
        free(total);
        return 1;
    }
    memset(places, 0xff, (size_t)size * sizeof(int64_t));
    for (int64_t i = 0; i < count; i++) {
        int64_t at = place_of(places, size, ids, ids[i]), first = places[at];
        next[i] = -1;
        if (first < 0) {
            places[at] = i;
            last[i] = i;
        } else {
            last[i] = -1;
            next[last[first]] = i;
            last[first] = i;
        }
    }
    for (int64_t i = 0; i < count; i++) {
        if (last[i] < 0)
            continue;
        const float *sum = r->values + i * width;
        float *to = r->out + ids[i] * width;
        if (next[i] >= 0) {
            memcpy(total, sum, (size_t)width * sizeof(float));
            for (int64_t k = next[i]; k >= 0; k = next[k])
                for (int64_t j = 0; j < width; j++)
                    total[j] += r->values[k * width + j];
            sum = total;
        }
        for (int64_t j = 0; j < width; j++)
            to[j] -= sum[j] * r->rate;
    }
    free(places);
    free(total);
    return 0;
}

/* out[id] -= rate * the sum of all values of that id, for ids in 0 .. height - 1. Returns 0, or 1 when nothing was done
   for want of memory. */
EXPORTED int64_t oprack_sgd_rows(struct rows *rows)
{
    int64_t status;
    exit_enter();
    status = sgd_rows(rows);
    exit_leave();
    return status;
}

/* Parts of an array along one dim, in the order of `places`: `outer` times some of `size` parts of `width` floats. */
struct take {
    int64_t outer, size, width, count;
    int64_t places[];
};

EXPORTED int oprack_take(const struct take *t, void *const *memory, int64_t threads)
{
    const float *from = memory[0];
    float *to = memory[1];
    (void)threads; /* copies of small arrays; large ones are NumPy's */
    for (int64_t i = 0; i < t->outer; i++, from += t->size * t->width)
        for (int64_t k = 0; k < t->count; k++, to += t->width) {
            const float *part = from + t->places[k] * t->width;
            if (t->width == 1)
                *to = *part;
            else
                memcpy(to, part, (size_t)t->width * sizeof(float));
        }
    return 0;
}
