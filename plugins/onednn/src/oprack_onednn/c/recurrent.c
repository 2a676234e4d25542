/* Recurrent layers for inference: all steps of some sequences in one direction, in one call.

   Sequences come longest first, so that those which still run are the first rows of the states. What depends on the
   input alone is one product for all rows; a step multiplies the states by weights that stay in the caches. */

/* Sums of products are rounded once where the CPU can do so: functions of gates take a good part of the time. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT ON
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif

#include "native.h"
#include "numbers.h"
#include "pool.h"
#include "product.h"
#include "recurrent.h"

#include <stdint.h>
#include <string.h>

/* Numbers of the sequences are those of `first` and `lengths`: a sequence's first row in the direction that it is walked,
   from which each next one is `stride` away. Rows of x are `x_row` numbers apart, those of out and out_c `out_row`.

   x: the input, `inputs` wide, or where weights_x is NULL its products with bias, `wide` wide. bias: `wide` numbers.
   weights_h: of `hidden_columns` columns; of a GRU then the candidate's, of `size`. candidate_bias: of an LBR_GRU what is
   added to the candidate's part of h. peepholes: 3 size numbers, or NULL. gates: where a GRU's u, r, c, or an LSTM's i, f,
   g, o begin in a row of x's products, in units of size. origin: whether u keeps the old state.

   h, c: [count, size], states before, and after. out, out_c: rows of states, or NULL. kept: for the way back rows of an
   LSTM's i, f, g, o, c and h; of a GRU's u, r, c, and h times r; of an LBR_GRU's r, u, c, the candidate's part of h, and h;
   of an RNN's h; or NULL. Of scratch x's products take `wide` numbers for each row of x where
   weights_x is given, and then each of `count` sequences takes `wide` numbers, and size more. */
struct recurrent {
    int64_t cell, count, rows, size, inputs, wide, stride, origin;
    int64_t x_row, out_row;
    int64_t functions[3]; /* of gates, of the candidate or of a plain cell, and of an LSTM's cell that is shown */
    int64_t gates[4];
    const int64_t *first, *lengths;
    const float *x, *weights_x, *bias, *weights_h, *weights_c, *candidate_bias, *peepholes;
    float *h, *c, *out, *out_c, *kept, *scratch;
};

INLINE void apply(int64_t function, float *x, int64_t count)
{
    switch (function) {
    case SIGMOID:
        APART
        for (int64_t j = 0; j < count; j++)
            x[j] = sigmoid(x[j]);
        break;
    case TANH:
        APART
        for (int64_t j = 0; j < count; j++)
            x[j] = hyperbolic(x[j]);
        break;
    case RELU:
        APART
        for (int64_t j = 0; j < count; j++)
            x[j] = x[j] < 0.0f ? 0.0f : x[j]; /* NaN stays NaN */
        break;
    }
}

typedef void (*activate_function)(int64_t function, float *x, int64_t count);
static void activate_narrow(int64_t function, float *x, int64_t count) { apply(function, x, count); }
static WIDE void activate_wide(int64_t function, float *x, int64_t count) { apply(function, x, count); }
static WIDEST void activate_widest(int64_t function, float *x, int64_t count) { apply(function, x, count); }

INLINE void add(float *to, const float *from, int64_t count)
{
    APART
    for (int64_t j = 0; j < count; j++)
        to[j] += from[j];
}

/* A step of one sequence: sums has the products with h; what becomes of h goes to h. */
INLINE void gru_gates(const struct recurrent *r, activate_function activate, const float *x, float *sums, const float *h,
                      float *reset)
{
    const int64_t n = r->size;
    add(sums, x + r->gates[0] * n, n);
    add(sums + n, x + r->gates[1] * n, n);
    activate(r->functions[0], sums, 2 * n);
    APART
    for (int64_t j = 0; j < n; j++)
        reset[j] = sums[n + j] * h[j];
}

INLINE void gru_state(const struct recurrent *r, activate_function activate, const float *update, float *candidate, float *h)
{
    const int64_t n = r->size;
    activate(r->functions[1], candidate, n);
    if (r->origin) {
        APART
        for (int64_t j = 0; j < n; j++)
            h[j] = update[j] * h[j] + (1.0f - update[j]) * candidate[j];
    } else {
        APART
        for (int64_t j = 0; j < n; j++)
            h[j] = (1.0f - update[j]) * h[j] + update[j] * candidate[j];
    }
}

INLINE void lbr_gru(const struct recurrent *r, activate_function activate, const float *x, float *sums, float *h,
                    float *of_h)
{
    const int64_t n = r->size;
    float *candidate = sums + 2 * n;
    add(sums, x + r->gates[0] * n, n);
    add(sums + n, x + r->gates[1] * n, n);
    activate(r->functions[0], sums, 2 * n);
    const float *of_x = x + r->gates[2] * n, *reset = sums + n, *bias = r->candidate_bias;
    APART
    for (int64_t j = 0; j < n; j++) {
        of_h[j] = candidate[j] + bias[j];
        candidate[j] = of_x[j] + reset[j] * of_h[j];
    }
    gru_state(r, activate, sums, candidate, h);
}

INLINE void lstm(const struct recurrent *r, activate_function activate, const float *x, float *sums, float *h, float *c)
{
    const int64_t n = r->size;
    float *in = sums, *forget = sums + n, *new = sums + 2 * n, *show = sums + 3 * n;
    const float *holes = r->peepholes;
    for (int64_t g = 0; g < 4; g++)
        add(sums + g * n, x + r->gates[g] * n, n);
    if (holes) {
        APART
        for (int64_t j = 0; j < n; j++) {
            in[j] += holes[j] * c[j];
            forget[j] += holes[n + j] * c[j];
        }
    }
    activate(r->functions[0], in, 2 * n);
    activate(r->functions[1], new, n);
    APART
    for (int64_t j = 0; j < n; j++)
        c[j] = forget[j] * c[j] + in[j] * new[j];
    if (holes) {
        APART
        for (int64_t j = 0; j < n; j++)
            show[j] += holes[2 * n + j] * c[j];
    }
    activate(r->functions[0], show, n);
    memcpy(h, c, (size_t)n * sizeof(float));
    activate(r->functions[2], h, n);
    APART
    for (int64_t j = 0; j < n; j++)
        h[j] *= show[j];
}

/* Appends n numbers. */
INLINE float *append(float *to, const float *from, int64_t n)
{
    memcpy(to, from, (size_t)n * sizeof(float));
    return to + n;
}

INLINE void keep(const struct recurrent *r, int64_t place, const float *sums, const float *of_h, const float *h, const float *c)
{
    const int64_t n = r->size;
    float *to;
    switch (r->cell) {
    case GRU: append(append(r->kept + place * 4 * n, sums, 3 * n), of_h, n); break;
    case LBR_GRU:
        to = append(append(r->kept + place * 5 * n, sums + n, n), sums, n);
        append(append(append(to, sums + 2 * n, n), of_h, n), h, n);
        break;
    case LSTM: append(append(append(r->kept + place * 6 * n, sums, 4 * n), c, n), h, n); break;
    default: append(r->kept + place * n, h, n);
    }
}

INLINE void run(const struct recurrent *r, activate_function activate)
{
    const int64_t n = r->size, row = r->wide, hidden = r->cell == GRU ? 2 * n : row;
    const float *x = r->x;
    float *sums = r->scratch, *reset;
    int64_t x_row = r->x_row, running = r->count;
    if (r->weights_x) {
        product(r->x, r->x_row, r->rows, r->weights_x, r->inputs, row, r->bias, sums, row);
        x = sums;
        x_row = row;
        sums += r->rows * row;
    }
    reset = sums + r->count * row;
    for (int64_t t = 0; running; t++) {
        while (running && r->lengths[running - 1] <= t)
            running--;
        if (!running)
            break;
        product(r->h, n, running, r->weights_h, n, hidden, NULL, sums, row);
        for (int64_t s = 0; s < running; s++) {
            const float *of_x = x + (r->first[s] + t * r->stride) * x_row;
            float *h = r->h + s * n, *own = sums + s * row;
            switch (r->cell) {
            case GRU: gru_gates(r, activate, of_x, own, h, reset + s * n); break;
            case LBR_GRU: lbr_gru(r, activate, of_x, own, h, reset + s * n); break;
            case LSTM: lstm(r, activate, of_x, own, h, r->c + s * n); break;
            default:
                add(own, of_x, n);
                activate(r->functions[1], own, n);
                memcpy(h, own, (size_t)n * sizeof(float));
            }
        }
        if (r->cell == GRU) {
            float *candidates = sums + 2 * n;
            product(reset, n, running, r->weights_c, n, n, NULL, candidates, row);
            for (int64_t s = 0; s < running; s++) {
                const float *of_x = x + (r->first[s] + t * r->stride) * x_row;
                add(candidates + s * row, of_x + r->gates[2] * n, n);
                gru_state(r, activate, sums + s * row, candidates + s * row, r->h + s * n);
            }
        }
        for (int64_t s = 0; s < running; s++) {
            const int64_t place = r->first[s] + t * r->stride, at = place * r->out_row;
            if (r->out)
                memcpy(r->out + at, r->h + s * n, (size_t)n * sizeof(float));
            if (r->out_c)
                memcpy(r->out_c + at, r->c + s * n, (size_t)n * sizeof(float));
            if (r->kept)
                keep(r, place, sums + s * row, reset + s * n, r->h + s * n, r->c + s * n);
        }
    }
}

static void run_narrow(const struct recurrent *r) { run(r, activate_narrow); }
static WIDE void run_wide(const struct recurrent *r) { run(r, activate_wide); }
static WIDEST void run_widest(const struct recurrent *r) { run(r, activate_widest); }

static void run_one(const struct recurrent *r)
{
    (HAS_WIDEST ? run_widest : HAS_WIDE ? run_wide : run_narrow)(r);
}

struct jobs {
    const struct recurrent *jobs;
    int64_t count;
};

static void share(void *data)
{
    const struct jobs *all = data;
    for (int64_t i = pool_number(); i < all->count; i += pool_count())
        run_one(all->jobs + i);
}

EXPORTED void oprack_recurrent(const struct recurrent *jobs, int64_t count, int64_t threads)
{
    struct jobs all = {jobs, count};
    pool_run(share, &all, threads);
}

/* A step of an LSTM among primitives. places: `count` times 0, 1, .. for `first`, then as many times 1 for `lengths`. */
struct lstm_step {
    int64_t count, size, inputs, places[];
};

/* memory: x, h and c before; the packed weights of x and h, and the bias; scratch memory, for each sequence 9 size numbers;
   h and c. */
EXPORTED int oprack_lstm_step(const struct lstm_step *s, void *const *memory, int64_t threads)
{
    const int64_t count = s->count, n = s->size;
    const struct recurrent r = {
        .cell = LSTM, .count = count, .rows = count, .size = n, .inputs = s->inputs, .wide = 4 * n, .x_row = s->inputs,
        .functions = {SIGMOID, TANH, TANH}, .gates = {0, 1, 2, 3}, .first = s->places, .lengths = s->places + count,
        .x = memory[0], .weights_x = memory[3], .weights_h = memory[4], .bias = memory[5], .scratch = memory[6],
        .h = memory[7], .c = memory[8],
    };
    (void)threads; /* a step is too little to be shared */
    memcpy(r.h, memory[1], (size_t)(count * n) * sizeof(float));
    memcpy(r.c, memory[2], (size_t)(count * n) * sizeof(float));
    run_one(&r);
    return 0;
}
