/* The steps of an LSTM without their products, forward and back; NumPy takes more than a dozen calls for one.

   A row of what is kept for the way back is i, f, g, o, c and h of a sequence. */

#include "native.h"
#include "numbers.h"
#include "pool.h"

#include <stdint.h>

/* One step of `batch` sequences. Numbers between rows, of arrays that may be parts of others: kept, and before, the
   row of c before this step. gates: products with the input, with the biases; recurrent: those with h. */
struct step {
    int64_t batch, size, before_row, out_row, threads;
    const float *gates, *recurrent, *before;
    float *kept, *out; /* out: h; on the way back its gradient */
    float *dh, *dc, *d; /* gradients of h, of c, and of the gates */
};

INLINE void forward(const struct step *s, int64_t b, int64_t end)
{
    const int64_t n = s->size;
    for (; b < end; b++) {
        const float *x = s->gates + 4 * n * b, *r = s->recurrent + 4 * n * b, *c = s->before + s->before_row * b;
        float *kept = s->kept + 6 * n * b, *out = s->out + s->out_row * b;
        APART
        for (int64_t j = 0; j < n; j++) {
            float i = sigmoid(x[j] + r[j]), f = sigmoid(x[n + j] + r[n + j]);
            float g = hyperbolic(x[2 * n + j] + r[2 * n + j]), o = sigmoid(x[3 * n + j] + r[3 * n + j]);
            float cell = f * c[j] + i * g, h = o * hyperbolic(cell);
            kept[j] = i;
            kept[n + j] = f;
            kept[2 * n + j] = g;
            kept[3 * n + j] = o;
            kept[4 * n + j] = cell;
            kept[5 * n + j] = h;
            out[j] = h;
        }
    }
}

INLINE void backward(const struct step *s, int64_t b, int64_t end)
{
    const int64_t n = s->size;
    for (; b < end; b++) {
        const float *kept = s->kept + 6 * n * b, *before = s->before + s->before_row * b;
        const float *out = s->out + s->out_row * b, *dh = s->dh + n * b;
        float *dc = s->dc + n * b, *d = s->d + 4 * n * b;
        APART
        for (int64_t j = 0; j < n; j++) {
            float i = kept[j], f = kept[n + j], g = kept[2 * n + j], o = kept[3 * n + j];
            float t = hyperbolic(kept[4 * n + j]), h = dh[j] + out[j];
            float cell = dc[j] + h * o * (1.0f - t * t);
            d[j] = cell * g * i * (1.0f - i);
            d[n + j] = cell * before[j] * f * (1.0f - f);
            d[2 * n + j] = cell * i * (1.0f - g * g);
            d[3 * n + j] = h * t * o * (1.0f - o);
            dc[j] = cell * f;
        }
    }
}

typedef void (*part_function)(const struct step *step, int64_t begin, int64_t end);

static void forward_narrow(const struct step *s, int64_t begin, int64_t end) { forward(s, begin, end); }
static void backward_narrow(const struct step *s, int64_t begin, int64_t end) { backward(s, begin, end); }
static WIDE void forward_wide(const struct step *s, int64_t begin, int64_t end) { forward(s, begin, end); }
static WIDE void backward_wide(const struct step *s, int64_t begin, int64_t end) { backward(s, begin, end); }

struct job {
    const struct step *step;
    part_function part;
};

static void share(void *data)
{
    const struct job *job = data;
    int64_t batch = job->step->batch, number = pool_number(), parts = pool_count();
    job->part(job->step, batch * number / parts, batch * (number + 1) / parts);
}

EXPORTED void oprack_lstm_step(const struct step *step, int64_t back)
{
    part_function narrow = back ? backward_narrow : forward_narrow, wide = back ? backward_wide : forward_wide;
    struct job job = {step, HAS_WIDE ? wide : narrow};
    pool_run(share, &job, step->threads);
}

/* A step for inference, between primitives: gates, the sums of both products and the biases, c before, then h and c. */
struct cell {
    int64_t batch, size;
};

INLINE void cell_rows(const struct cell *s, const float *gates, const float *before, float *h, float *c)
{
    const int64_t n = s->size;
    for (int64_t b = 0; b < s->batch; b++, gates += 4 * n, before += n, h += n, c += n) {
        APART
        for (int64_t j = 0; j < n; j++) {
            float i = sigmoid(gates[j]), f = sigmoid(gates[n + j]);
            float g = hyperbolic(gates[2 * n + j]), o = sigmoid(gates[3 * n + j]);
            c[j] = f * before[j] + i * g;
            h[j] = o * hyperbolic(c[j]);
        }
    }
}

static void cell_narrow(const struct cell *s, const float *gates, const float *before, float *h, float *c)
{
    cell_rows(s, gates, before, h, c);
}

static WIDE void cell_wide(const struct cell *s, const float *gates, const float *before, float *h, float *c)
{
    cell_rows(s, gates, before, h, c);
}

EXPORTED int oprack_lstm_cell(const struct cell *settings, void *const *memory, int64_t threads)
{
    (void)threads; /* a step is too little to be shared */
    (HAS_WIDE ? cell_wide : cell_narrow)(settings, memory[0], memory[1], memory[2], memory[3]);
    return 0;
}
