/* Recurrent layers for inference: all steps of some sequences in one direction, in one call.

   Sequences come longest first, so that those which still run are the first rows of the states. What depends on the
   input alone is one product for all rows; a step multiplies the states by weights that stay in the caches. Weights are
   packed in blocks of COLUMNS columns, the rows of a block one after the other. */

#include "native.h"
#include "numbers.h"
#include "pool.h"

#include <stdint.h>
#include <string.h>

#ifdef POOL
#include <immintrin.h>
#endif

#define COLUMNS 16 /* of a block of weights: a cache line */

enum cell { GRU, LBR_GRU, LSTM, RNN };
enum function { IDENTITY, SIGMOID, TANH, RELU };

/* Numbers of the sequences are those of `first` and `lengths`: a sequence's first row in the direction that it is walked,
   from which each next one is `stride` away. Rows of x are `x_row` numbers apart, those of out and out_c `out_row`.

   x: the input, `inputs` wide, or where weights_x is NULL its products with bias, `wide` wide. bias: `wide` numbers.
   weights_h: of `hidden_columns` columns; of a GRU then the candidate's, of `size`. candidate_bias: of an LBR_GRU what is
   added to the candidate's part of h. peepholes: 3 size numbers, or NULL. gates: where a GRU's u, r, c, or an LSTM's i, f,
   g, o begin in a row of x's products, in units of size. origin: whether u keeps the old state.

   h, c: [count, size], states before, and after. out, out_c: rows of states, or NULL. Of scratch x's products take as many
   rows as x has where weights_x is given, and then each of `count` rows takes `row` numbers, and size more. */
struct recurrent {
    int64_t cell, count, rows, size, inputs, wide, stride, origin;
    int64_t x_row, out_row, row;
    int64_t functions[3]; /* of gates, of the candidate or of a plain cell, and of an LSTM's cell that is shown */
    int64_t gates[4];
    const int64_t *first, *lengths;
    const float *x, *weights_x, *bias, *weights_h, *weights_c, *candidate_bias, *peepholes;
    float *h, *c, *out, *out_c, *scratch;
};

static int64_t whole(int64_t columns)
{
    return (columns + COLUMNS - 1) / COLUMNS * COLUMNS;
}

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

/* What is compiled for some set of instructions. */
typedef void (*activate_function)(int64_t function, float *x, int64_t count);
typedef void (*product_function)(const float *a, int64_t a_row, int64_t rows, const float *w, int64_t inner,
                                 int64_t columns, const float *bias, float *out, int64_t out_row);

#ifdef POOL
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef float sixteen __attribute__((vector_size(64), aligned(4), may_alias));

#define AVX2 __attribute__((target("avx2,fma")))
static AVX2 void activate_wide(int64_t function, float *x, int64_t count) { apply(function, x, count); }
static WIDEST void activate_widest(int64_t function, float *x, int64_t count) { apply(function, x, count); }

#define PRODUCT product_wide
#define TILE tile_wide
#define INSTRUCTIONS AVX2
#define vector eight
#define LANES 8
#define EACH(x) ((eight)_mm256_set1_ps(x))
#define PLUS_PRODUCT(sum, a, b) ((eight)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(sum)))
#define ROWS 6
#define PAIRED 3
#define FEW 1
#include "product.h"

#define PRODUCT product_widest
#define TILE tile_widest
#define INSTRUCTIONS WIDEST
#define vector sixteen
#define LANES 16
#define EACH(x) ((sixteen)_mm512_set1_ps(x))
#define PLUS_PRODUCT(sum, a, b) ((sixteen)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(sum)))
#define ROWS 12
#define PAIRED 12
#define FEW 6
#include "product.h"
#else
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

#define PRODUCT product_narrow
#define TILE tile_narrow
#define INSTRUCTIONS
#define vector four
#define LANES 4
#define EACH(x) ((four){x, x, x, x})
#define PLUS_PRODUCT(sum, a, b) ((sum) + (a) * (b))
#define ROWS 6
#define PAIRED 3
#define FEW 1
#include "product.h"
#endif

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

INLINE void lbr_gru(const struct recurrent *r, activate_function activate, const float *x, float *sums, float *h)
{
    const int64_t n = r->size;
    float *candidate = sums + 2 * n;
    add(sums, x + r->gates[0] * n, n);
    add(sums + n, x + r->gates[1] * n, n);
    activate(r->functions[0], sums, 2 * n);
    const float *of_x = x + r->gates[2] * n, *reset = sums + n, *bias = r->candidate_bias;
    APART
    for (int64_t j = 0; j < n; j++)
        candidate[j] = of_x[j] + reset[j] * (candidate[j] + bias[j]);
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

INLINE void run(const struct recurrent *r, product_function product, activate_function activate)
{
    const int64_t n = r->size, row = r->row, hidden = r->cell == GRU ? 2 * n : r->cell == LBR_GRU ? 3 * n : r->wide;
    const float *x = r->x;
    float *sums = r->scratch, *reset;
    int64_t x_row = r->x_row, running = r->count;
    if (r->weights_x) {
        x_row = whole(r->wide);
        product(r->x, r->x_row, r->rows, r->weights_x, r->inputs, r->wide, r->bias, sums, x_row);
        x = sums;
        sums += r->rows * x_row;
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
            case LBR_GRU: lbr_gru(r, activate, of_x, own, h); break;
            case LSTM: lstm(r, activate, of_x, own, h, r->c + s * n); break;
            default:
                add(own, of_x, n);
                activate(r->functions[1], own, n);
                memcpy(h, own, (size_t)n * sizeof(float));
            }
        }
        if (r->cell == GRU) {
            float *candidates = sums + whole(2 * n);
            product(reset, n, running, r->weights_c, n, n, NULL, candidates, row);
            for (int64_t s = 0; s < running; s++) {
                const float *of_x = x + (r->first[s] + t * r->stride) * x_row;
                add(candidates + s * row, of_x + r->gates[2] * n, n);
                gru_state(r, activate, sums + s * row, candidates + s * row, r->h + s * n);
            }
        }
        for (int64_t s = 0; s < running; s++) {
            const int64_t at = (r->first[s] + t * r->stride) * r->out_row;
            if (r->out)
                memcpy(r->out + at, r->h + s * n, (size_t)n * sizeof(float));
            if (r->out_c)
                memcpy(r->out_c + at, r->c + s * n, (size_t)n * sizeof(float));
        }
    }
}

#ifdef POOL
static AVX2 void run_wide(const struct recurrent *r) { run(r, product_wide, activate_wide); }

static WIDEST void run_widest(const struct recurrent *r) { run(r, product_widest, activate_widest); }
#else
static void run_narrow(const struct recurrent *r) { run(r, product_narrow, apply); }
#endif

struct jobs {
    const struct recurrent *jobs;
    int64_t count;
};

static void share(void *data)
{
    const struct jobs *all = data;
#ifdef POOL
    void (*run_job)(const struct recurrent *) = HAS_WIDEST ? run_widest : run_wide;
#else
    void (*run_job)(const struct recurrent *) = run_narrow;
#endif
    for (int64_t i = pool_number(); i < all->count; i += pool_count())
        run_job(all->jobs + i);
}

EXPORTED int oprack_recurrent_serves(void)
{
#ifdef POOL
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 1;
#endif
}

EXPORTED void oprack_recurrent(const struct recurrent *jobs, int64_t count, int64_t threads)
{
    struct jobs all = {jobs, count};
    pool_run(share, &all, threads);
}
