/* The way back of a direction of a recurrent layer that is trained: the gradients of the gates in all steps, from which
   products of whole matrices give all others. */

#include "native.h"
#include "numbers.h"
#include "pool.h"
#include "product.h"
#include "recurrent.h"

#include <stddef.h>
#include <stdint.h>

/* Sequences are walked longest first: step k has `counts[k]` rows from `first[k]` on, one of each that still runs.

   before: the states before the first step, of an LSTM c, of others h, [counts[0], size]. kept: rows of a GRU's u, r and c,
   whose h has rows of their own; of the others as recurrent.c keeps them. out: the gradients of h of each row, `out_row`
   numbers apart. w_gates, w_candidate: [2 size, size] of a GRU's u and r, and [size, size] of its candidate; of others the
   weights of all gates, and NULL; packed. dh, and dc of an LSTM, have the gradients of the last states, and get those of the
   first ones. d gets those of the gates, [rows, gates size]; d_state of an LBR_GRU's products with h. scratch: [counts[0],
   size] of both GRUs. functions: of gates, and of the candidate or of an RNN. origin: whether u keeps the old state. */
struct way_back {
    int64_t cell, steps, size, out_row, origin, functions[2];
    const int64_t *first, *counts;
    const float *before, *kept, *h, *out, *w_gates, *w_candidate;
    float *dh, *dc, *d, *d_state, *scratch;
};

/* d times the slope of a function where it is y. */
INLINE void through(int64_t function, const float *y, float *d, int64_t count)
{
    switch (function) {
    case SIGMOID:
        APART
        for (int64_t j = 0; j < count; j++)
            d[j] *= y[j] * (1.0f - y[j]);
        break;
    case TANH:
        APART
        for (int64_t j = 0; j < count; j++)
            d[j] *= 1.0f - y[j] * y[j];
        break;
    case RELU:
        APART
        for (int64_t j = 0; j < count; j++)
            d[j] *= y[j] > 0.0f ? 1.0f : 0.0f; /* NaN of d stays NaN */
        break;
    }
}

INLINE void lstm(int64_t n, const float *kept, const float *before, const float *out, const float *dh, float *dc, float *d)
{
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

/* The gradients of u and of the candidate; of dh what goes by the gates stays. */
INLINE void gru_state(const struct way_back *w, const float *kept, const float *before, const float *out, float *dh, float *d)
{
    const int64_t n = w->size;
    const float *u = kept, *c = kept + 2 * n, sign = w->origin ? -1.0f : 1.0f;
    APART
    for (int64_t j = 0; j < n; j++) {
        float h = dh[j] + out[j], keep = w->origin ? u[j] : 1.0f - u[j];
        d[j] = h * sign * (c[j] - before[j]);
        d[2 * n + j] = h * (1.0f - keep);
        dh[j] = h * keep;
    }
    through(w->functions[0], u, d, n);
    through(w->functions[1], c, d + 2 * n, n);
}

/* The gradient of r, from that of r h. */
INLINE void gru_reset(const struct way_back *w, const float *r, const float *before, const float *reset, float *dh, float *d)
{
    APART
    for (int64_t j = 0; j < w->size; j++) {
        d[j] = reset[j] * before[j];
        dh[j] += reset[j] * r[j];
    }
    through(w->functions[0], r, d, w->size);
}

/* A GRU whose reset gate is within the candidate's part of h, by which the gradients of the two parts differ. */
INLINE void lbr_gru(int64_t n, const float *kept, const float *before, const float *out, float *dh, float *d, float *d_state)
{
    APART
    for (int64_t j = 0; j < n; j++) {
        float r = kept[j], u = kept[n + j], c = kept[2 * n + j], h = dh[j] + out[j];
        float candidate = h * (1.0f - u) * (1.0f - c * c);
        d[j] = d_state[j] = candidate * kept[3 * n + j] * r * (1.0f - r);
        d[n + j] = d_state[n + j] = h * (before[j] - c) * u * (1.0f - u);
        d[2 * n + j] = candidate;
        d_state[2 * n + j] = candidate * r;
        dh[j] = h * u;
    }
}

/* What belongs to a thread in a step: rows of every n-th sequence, so that threads have as much to do where sequences end. */
struct share {
    int64_t rows, apart, kept_row, before_row, wide;
    const float *kept, *before, *out;
    float *dh, *dc, *d, *d_state, *scratch;
};

INLINE void add_scratch(const struct way_back *w, const struct share *s)
{
    for (int64_t i = 0, at = 0; i < s->rows; i++, at += s->apart * w->size) {
        APART
        for (int64_t j = 0; j < w->size; j++)
            s->dh[at + j] += s->scratch[at + j];
    }
}

INLINE void gru_step(const struct way_back *w, const struct share *s)
{
    const int64_t n = w->size, row = s->apart * n, wide = s->apart * s->wide;
    for (int64_t i = 0; i < s->rows; i++)
        gru_state(w, s->kept + i * wide, s->before + i * row, s->out + i * s->apart * w->out_row, s->dh + i * row, s->d + i * wide);
    product(s->d + 2 * n, wide, s->rows, w->w_candidate, n, n, NULL, s->scratch, row);
    for (int64_t i = 0; i < s->rows; i++)
        gru_reset(w, s->kept + i * wide + n, s->before + i * row, s->scratch + i * row, s->dh + i * row, s->d + i * wide + n);
    product(s->d, wide, s->rows, w->w_gates, 2 * n, n, NULL, s->scratch, row);
    add_scratch(w, s);
}

INLINE void step(const struct way_back *w, const struct share *s)
{
    const int64_t n = w->size, row = s->apart * n, wide = s->apart * s->wide;
    for (int64_t i = 0; i < s->rows; i++) {
        const float *kept = s->kept + i * s->apart * s->kept_row, *before = s->before + i * s->apart * s->before_row;
        const float *out = s->out + i * s->apart * w->out_row;
        float *dh = s->dh + i * row, *d = s->d + i * wide;
        switch (w->cell) {
        case LSTM: lstm(n, kept, before, out, dh, s->dc + i * row, d); break;
        case LBR_GRU: lbr_gru(n, kept, before, out, dh, d, s->d_state + i * wide); break;
        default:
            APART
            for (int64_t j = 0; j < n; j++)
                d[j] = dh[j] + out[j];
            through(w->functions[1], kept, d, n);
        }
    }
    if (w->cell == LBR_GRU) {
        product(s->d_state, wide, s->rows, w->w_gates, 3 * n, n, NULL, s->scratch, row);
        add_scratch(w, s);
    } else {
        product(s->d, wide, s->rows, w->w_gates, s->wide, n, NULL, s->dh, row);
    }
}

INLINE void work(const struct way_back *w)
{
    /* of each cell: its gates, numbers of a row of `kept`, and where in it the state is that the next step begins with */
    static const int64_t gates[] = {3, 3, 4, 1}, kept[] = {3, 5, 6, 1}, state[] = {0, 4, 4, 0};
    const int64_t n = w->size, own = pool_number(), parts = pool_count();
    struct share s = {.apart = parts, .kept_row = kept[w->cell] * n, .wide = gates[w->cell] * n};
    s.dh = w->dh + own * n;
    s.dc = w->dc ? w->dc + own * n : NULL;
    s.scratch = w->scratch + own * n;
    for (int64_t k = w->steps - 1; k >= 0; k--) {
        const int64_t first = w->first[k] + own, previous = k ? w->first[k - 1] + own : 0;
        s.rows = (w->counts[k] - own + parts - 1) / parts;
        if (s.rows <= 0)
            continue;
        s.d = w->d + first * s.wide;
        s.d_state = w->d_state ? w->d_state + first * s.wide : NULL;
        s.kept = w->kept + first * s.kept_row;
        s.out = w->out + first * w->out_row;
        s.before_row = k && w->cell != GRU ? s.kept_row : n;
        if (!k)
            s.before = w->before + own * n;
        else if (w->cell == GRU)
            s.before = w->h + previous * n;
        else
            s.before = w->kept + previous * s.kept_row + state[w->cell] * n;
        if (w->cell == GRU)
            gru_step(w, &s);
        else
            step(w, &s);
    }
}

static void work_narrow(void *data) { work(data); }
static WIDE void work_wide(void *data) { work(data); }
static WIDEST void work_widest(void *data) { work(data); }

EXPORTED void oprack_recurrent_grad(struct way_back *w, int64_t threads)
{
    pool_run(HAS_WIDEST ? work_widest : HAS_WIDE ? work_wide : work_narrow, w, threads);
}
