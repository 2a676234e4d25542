/* A direction of a layer of LSTMs that is trained: all steps forward, and all gradients, in one call each.

   Weights are packed once in a call, in blocks of columns that stay in the caches. Forward a block has columns of all gates,
   and goes on with them while their sums are near; what depends on the input alone is computed for some steps together.

   A row of what is kept for the way back is i, f, g, o, c and h of a sequence. */

/* Sums of products are rounded once where the CPU can do so: of the gates these take half of the time. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT ON
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif

#include "native.h"
#include "numbers.h"
#include "pool.h"

#include <stdint.h>
#include <string.h>

#define KEPT 6
#define GATES 4
#define TOGETHER 64 /* rows of the input that are multiplied together */
#define INNER 128 /* rows of the gradients of gates that are multiplied together */

/* x: [steps, batch, inputs]. w_input, w_state: [4 size, inputs] and [4 size, size]. h, c: the states before the first step.
   out: of its rows, which may be parts of longer ones, and of its steps it is said how far they are apart. With columns
   rounded up to BLOCK more, packed_input has room for [inputs + 1, 4 size] numbers, packed_state for [size, 4 size], and
   sums for [batch + TOGETHER, 4 size].

   On the way back out has the gradients of h, and dh and dc have those of the last states, and get those of the first
   ones; d gets those of the gates; sums has room for [INNER, inputs + size + BLOCK] numbers of each thread. */
struct lstm {
    int64_t steps, batch, size, inputs, reverse, out_step, out_row, threads, by_rows;
    const float *x, *w_input, *w_state, *bias, *h, *c;
    float *packed_input, *packed_state, *sums, *kept, *out, *dh, *dc, *d, *dx, *dw_input, *dw_state;
};

/* A share of the work: some sequences and some blocks of columns, in one step. */
struct part {
    int64_t row, row_end, block, block_end, step;
};

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The place of a step in memory. */
INLINE int64_t place(const struct lstm *s, int64_t step) { return s->reverse ? s->steps - 1 - step : step; }

/* How many steps of the input are multiplied together. */
INLINE int64_t together(const struct lstm *s) { return s->batch < TOGETHER ? TOGETHER / s->batch : 1; }

/* c before a step, and the numbers between its rows. */
INLINE const float *cell_before(const struct lstm *s, int64_t step, int64_t *row)
{
    *row = step ? KEPT * s->size : s->size;
    return step ? s->kept + place(s, step - 1) * s->batch * KEPT * s->size + 4 * s->size : s->c;
}

/* Some numbers of a state: sums are those of the gates, `lanes` apart. */
INLINE void forward_row(const float *sums, const int64_t lanes, const float *before, float *kept, int64_t n, float *out,
                        int64_t count)
{
    APART
    for (int64_t j = 0; j < count; j++) {
        float i = sigmoid(sums[j]), f = sigmoid(sums[lanes + j]);
        float g = hyperbolic(sums[2 * lanes + j]), o = sigmoid(sums[3 * lanes + j]);
        float cell = f * before[j] + i * g, h = o * hyperbolic(cell);
        kept[j] = i;
        kept[n + j] = f;
        kept[2 * n + j] = g;
        kept[3 * n + j] = o;
        kept[4 * n + j] = cell;
        kept[5 * n + j] = h;
        out[j] = h;
    }
}

/* Numbers `begin` .. of the gradients of a row of gates. */
INLINE void backward_row(int64_t n, const float *kept, const float *before, const float *out, const float *dh, float *dc,
                         float *d, int64_t begin, int64_t count)
{
    kept += begin, before += begin, out += begin, dh += begin, dc += begin, d += begin;
    APART
    for (int64_t j = 0; j < count; j++) {
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

static const float zeros[GATES * 16];

#define PLUS_PRODUCT(sum, a, b) ((sum) + (a) * (b))
#define TARGET
#define NAMED(name) name##_narrow
#define LANES 4
#define ROWS 4
#include "lstm_steps.h"

#ifdef POOL
#include <immintrin.h>

#define PLUS_PRODUCT(sum, a, b) ((floats)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(sum)))
#define TARGET __attribute__((target("avx2,fma")))
#define NAMED(name) name##_wide
#define LANES 8
#define ROWS 3
#include "lstm_steps.h"

#define PLUS_PRODUCT(sum, a, b) ((floats)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(sum)))
#define TARGET WIDEST
#define NAMED(name) name##_widest
#define LANES 16
#define ROWS 6
#include "lstm_steps.h"
#endif

typedef void (*part_function)(const struct lstm *s, const struct part *p);
typedef void (*share_of)(const struct lstm *s, int64_t number, int64_t parts);

/* What is compiled for one kind of CPU. lanes: columns of a gate in a block forward. */
struct code {
    int64_t lanes;
    part_function forward, rows_back, product_back;
    share_of pack, pack_back, gradients;
};

#define CODE(kind, lanes)                                                                                               \
    {lanes, forward_##kind, rows_back_##kind, product_back_##kind, pack_##kind, pack_back_##kind, gradients_##kind}

static const struct code narrow = CODE(narrow, 4);
#ifdef POOL
static const struct code wide = CODE(wide, 8), widest = CODE(widest, 16);
#endif

static const struct code *chosen(void)
{
#ifdef POOL
    if (HAS_WIDEST)
        return &widest;
    if (HAS_WIDE && __builtin_cpu_supports("fma"))
        return &wide;
#endif
    return &narrow;
}

/* What the threads share: a function of shares, or steps. */
struct job {
    const struct lstm *lstm;
    share_of share;
    part_function run, then;
    int64_t columns, step, step_end;
    int back;
};

static void share(void *data)
{
    const struct job *job = data;
    const struct lstm *s = job->lstm;
    const int64_t number = pool_number(), parts = pool_count(), blocks = (s->size + job->columns - 1) / job->columns;
    struct part p = {0, s->batch, 0, blocks, 0};
    if (job->share) {
        job->share(s, number, parts);
        return;
    }
    if (s->by_rows)
        p.row = s->batch * number / parts, p.row_end = s->batch * (number + 1) / parts;
    else
        p.block = blocks * number / parts, p.block_end = blocks * (number + 1) / parts;
    for (int64_t k = job->step; k < job->step_end; k++) {
        p.step = job->back ? s->steps - 1 - k : k;
        job->run(s, &p);
        if (job->then)
            job->then(s, &p);
    }
}

/* Threads have sequences of their own, and meet at the end; or where these are few, columns, and meet in each step. */
EXPORTED void oprack_lstm(const struct lstm *s, int64_t back)
{
    const struct code *code = chosen();
    struct job all = {s, back ? code->pack_back : code->pack, NULL, NULL, 1, 0, 0, 0}, job = all;
    pool_run(share, &all, s->threads);
    job.share = NULL;
    job.columns = back ? GATES * code->lanes : code->lanes;
    job.back = back != 0;
    for (int64_t step = 0; step < s->steps; step = job.step_end) {
        job.step = step;
        job.step_end = s->by_rows ? s->steps : step + 1;
        job.run = back ? code->rows_back : code->forward;
        job.then = back && s->by_rows ? code->product_back : NULL;
        pool_run(share, &job, s->threads);
        if (back && !s->by_rows) {
            job.run = code->product_back;
            pool_run(share, &job, s->threads);
        }
    }
    if (back) {
        all.share = code->gradients;
        pool_run(share, &all, s->threads);
    }
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
