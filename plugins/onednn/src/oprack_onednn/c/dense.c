/* What layers of matrices are made of in training, where the number of rows is another one in each step: products by
   oneDNN's dnnl_sgemm, which takes any sizes, and loops that go over memory once. For each number of rows anew, a
   primitive would take longer to make than many of these take. The numbers of the loops are NumPy's, bit by bit. */

#include "exit.h"
#include "native.h"
#include "pool.h"

#include <stdint.h>
#include <string.h>

#define LINE 16 /* floats of a cache line */

struct product {
    int (*multiply)(char turned_x, char turned_y, int64_t rows, int64_t columns, int64_t inner, float alpha,
                    const float *x, int64_t x_row, const float *y, int64_t y_row, float beta, float *out,
                    int64_t out_row);
    int64_t turned_x, turned_y, rows, columns, inner, x_row, y_row;
    const float *x, *y;
    float *out;
    float alpha;
};

/* out = alpha x y. Returns oneDNN's status. */
EXPORTED int64_t oprack_product(struct product *p)
{
    exit_enter();
    int status = p->multiply(p->turned_x ? 'T' : 'N', p->turned_y ? 'T' : 'N', p->rows, p->columns, p->inner, p->alpha,
                             p->x, p->x_row, p->y, p->y_row, 0, p->out, p->columns);
    exit_leave();
    return status;
}

enum kind { ADDED, ROW_ADDED, WHERE_POSITIVE, COPIED, COLUMN_SUMS };

/* x, y and out are [rows, columns]; of ROW_ADDED y is [columns], of COLUMN_SUMS out. */
struct dense {
    int64_t kind, rows, columns;
    const float *x, *y;
    float *out;
};

INLINE void apply(const struct dense *d, int64_t begin, int64_t end)
{
    const float *x = d->x, *y = d->y;
    const int64_t columns = d->columns;
    float *out = d->out;
    switch (d->kind) {
    case ADDED:
        APART
        for (int64_t i = begin; i < end; i++)
            out[i] = x[i] + y[i];
        break;
    case WHERE_POSITIVE:
        APART
        for (int64_t i = begin; i < end; i++)
            out[i] = x[i] * (y[i] > 0 ? 1.0f : 0.0f);
        break;
    case COPIED:
        memcpy(out + begin, x + begin, (size_t)(end - begin) * sizeof(float));
        break;
    case ROW_ADDED:
        for (int64_t i = begin; i < end; i++) {
            const float *from = x + i * columns;
            float *to = out + i * columns;
            APART
            for (int64_t j = 0; j < columns; j++)
                to[j] = from[j] + y[j];
        }
        break;
    case COLUMN_SUMS:
        memcpy(out + begin, x + begin, (size_t)(end - begin) * sizeof(float));
        for (int64_t i = 1; i < d->rows; i++) {
            const float *from = x + i * columns;
            APART
            for (int64_t j = begin; j < end; j++)
                out[j] += from[j];
        }
    }
}

static WIDE void apply_wide(const struct dense *d, int64_t begin, int64_t end) { apply(d, begin, end); }

static void share(void *data)
{
    const struct dense *d = data;
    const int64_t parts = pool_count(), number = pool_number();
    /* a sum is made by one thread, in the order of the rows, whatever the number of threads */
    const int64_t all = d->kind == ROW_ADDED ? d->rows : d->kind == COLUMN_SUMS ? d->columns : d->rows * d->columns;
    const int64_t line = d->kind == ROW_ADDED ? 1 : LINE, lines = (all + line - 1) / line;
    const int64_t begin = lines * number / parts * line, last = lines * (number + 1) / parts * line;
    const int64_t end = last < all ? last : all;
    if (begin >= end)
        return;
    if (HAS_WIDE)
        apply_wide(d, begin, end);
    else
        apply(d, begin, end);
}

EXPORTED void oprack_dense(struct dense *dense, int64_t threads)
{
    pool_run(share, dense, threads);
}
