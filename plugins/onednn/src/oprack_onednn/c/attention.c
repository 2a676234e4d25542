/* Attention between the rows of sequences, forward and back: for a head of a sequence, some queries at a time, products
   by oneDNN's dnnl_sgemm, and the softmax between them. It takes any lengths as they are: nothing is padded, and
   nothing is made for a shape. */

#include "native.h"
#include "numbers.h"
#include "pool.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES 16
#define SCORES (1 << 15) /* that are computed at once: what is made of them stays in the caches of a core */
#define FEWEST 16 /* rows of a product that is still a fast one */
#define STEP 64 /* queries at once where each sees other keys */
#define MOST 512 /* queries at once */
#define SMALL (1 << 12) /* multiplications of a product that takes less time than a call of oneDNN */

typedef int (*product_function)(char turned_a, char turned_b, int64_t rows, int64_t columns, int64_t inner, float alpha,
                                const float *a, int64_t a_row, const float *b, int64_t b_row, float beta, float *c,
                                int64_t c_row);

/* Numbers between rows and between heads, of arrays that may be parts of others: q, k and v. `out`, `lse`, and all
   gradients have rows [heads, width] without gaps. A weight is 0 where its hash is below `dropped`, else multiplied by
   `kept`. out_grad is 0 forward. */
struct attention {
    int64_t sequences, heads, kv_heads, width, value_width;
    int64_t before, behind, from_end, furthest;
    int64_t q_row, q_head, k_row, k_head, v_row, v_head;
    const int64_t *q_offsets, *k_offsets;
    const float *q, *k, *v, *bias;
    float *out, *lse;
    const float *out_grad;
    float *q_grad, *k_grad, *v_grad;
    product_function product;
    float scale, kept;
    uint32_t dropped, seed;
    int64_t failed;
};

/* Of a head of a sequence: queries first .. first + rows of it, and the keys low .. low + keys that some of them see.
   q and k: the rows of the sequence begin there; shift: the position of its first query. */
struct part {
    int64_t head, first, rows, low, keys, q, k, count, shift;
};

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* The keys that a query sees. */
INLINE int64_t begin_of(const struct attention *a, const struct part *p, int64_t query)
{
    return a->before < 0 ? 0 : least(most(query + p->shift - a->before, 0), p->count);
}

INLINE int64_t end_of(const struct attention *a, const struct part *p, int64_t query)
{
    return a->behind < 0 ? p->count : least(most(query + p->shift + a->behind + 1, 0), p->count);
}

INLINE float largest(const float *x, int64_t n)
{
    float lane[LANES], found = -INFINITY;
    int64_t j = 0;
    for (int l = 0; l < LANES; l++)
        lane[l] = -INFINITY;
    for (; j + LANES <= n; j += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] = x[j + l] > lane[l] ? x[j + l] : lane[l];
    for (; j < n; j++)
        found = x[j] > found ? x[j] : found;
    for (int l = 0; l < LANES; l++)
        found = lane[l] > found ? lane[l] : found;
    return found;
}

INLINE float sum_of(float *lane)
{
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

/* x becomes e to the power of x - shift. Returns the sum. */
INLINE float exponentials(float *x, int64_t n, float shift)
{
    float lane[LANES] = {0}, total = 0;
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int l = 0; l < LANES; l++) {
            x[j + l] = vanishing_exponential(x[j + l] - shift);
            lane[l] += x[j + l];
        }
    for (; j < n; j++) {
        x[j] = vanishing_exponential(x[j] - shift);
        total += x[j];
    }
    return total + sum_of(lane);
}

INLINE float inner_product(const float *x, const float *y, int64_t n)
{
    float lane[LANES] = {0}, total = 0;
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += x[j + l] * y[j + l];
    for (; j < n; j++)
        total += x[j] * y[j];
    return total + sum_of(lane);
}

/* Of 32 bits: each depends on all. */
INLINE uint32_t mixed(uint32_t x)
{
    x ^= x >> 16;
    x *= UINT32_C(0x7feb352d);
    x ^= x >> 15;
    x *= UINT32_C(0x846ca68b);
    return x ^ x >> 16;
}

/* Weights of a query, whose first key is number `low`: as kernels/attention.py of the pack sequence draws. */
INLINE void drop(const struct attention *a, int64_t row, int64_t head, int64_t low, float *x, int64_t n)
{
    const uint32_t key = mixed(a->seed ^ mixed((uint32_t)(row * a->heads + head))), dropped = a->dropped;
    const float kept = a->kept;
    APART
    for (int64_t j = 0; j < n; j++) {
        uint32_t number = (uint32_t)(low + j) * UINT32_C(0x9e3779b9);
        x[j] *= mixed(number ^ key) < dropped ? 0.0f : kept;
    }
}

INLINE void add_bias(const struct attention *a, const struct part *p, int64_t query, float *x, int64_t low, int64_t n)
{
    const float *bias = a->bias + p->head * (2 * a->furthest + 1) + a->furthest;
    const int64_t position = query + p->shift, furthest = a->furthest;
    for (int64_t j = 0; j < n; j++)
        x[j] += bias[least(most(low + j - position, -furthest), furthest)];
}

/* y += factor x */
INLINE void add_row(float *y, float factor, const float *x, int64_t n)
{
    APART
    for (int64_t j = 0; j < n; j++)
        y[j] += factor * x[j];
}

/* scores [rows, keys] = factor x y', of rows of the same width. */
INLINE void scores_of(const struct attention *a, const struct part *p, int64_t width, float factor, const float *x,
                      int64_t x_row, const float *y, int64_t y_row, float *scores)
{
    if (p->rows * p->keys * width > SMALL) {
        a->product('N', 'T', p->rows, p->keys, width, factor, x, x_row, y, y_row, 0, scores, p->keys);
        return;
    }
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->keys; j++)
            scores[i * p->keys + j] = factor * inner_product(x + i * x_row, y + j * y_row, width);
}

/* x [rows, width] = factor scores y, where y has a row for each key. */
INLINE void sum_over_keys(const struct attention *a, const struct part *p, int64_t width, float factor,
                          const float *scores, const float *y, int64_t y_row, float *x, int64_t x_row)
{
    if (p->rows * p->keys * width > SMALL) {
        a->product('N', 'N', p->rows, width, p->keys, factor, scores, p->keys, y, y_row, 0, x, x_row);
        return;
    }
    for (int64_t i = 0; i < p->rows; i++) {
        memset(x + i * x_row, 0, (size_t)width * sizeof(float));
        for (int64_t j = 0; j < p->keys; j++)
            add_row(x + i * x_row, factor * scores[i * p->keys + j], y + j * y_row, width);
    }
}

/* y [keys, width] += factor scores' x, where x has a row for each query. */
INLINE void add_over_queries(const struct attention *a, const struct part *p, int64_t width, float factor,
                             const float *scores, const float *x, int64_t x_row, float *y, int64_t y_row)
{
    if (p->rows * p->keys * width > SMALL) {
        a->product('T', 'N', p->keys, width, p->rows, factor, scores, p->keys, x, x_row, 1, y, y_row);
        return;
    }
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->keys; j++)
            add_row(y + j * y_row, factor * scores[i * p->keys + j], x + i * x_row, width);
}

INLINE void forward(const struct attention *a, const struct part *p, float *s)
{
    const int64_t n = p->keys, group = a->heads / a->kv_heads, kv = p->head / group, width = a->value_width;
    const int64_t out_row = a->heads * width, row = p->q + p->first;
    const float *q = a->q + row * a->q_row + p->head * a->q_head, *k = a->k + (p->k + p->low) * a->k_row + kv * a->k_head;
    const float *v = a->v + (p->k + p->low) * a->v_row + kv * a->v_head;
    float *out = a->out + row * out_row + p->head * width, *lse = a->lse + row * a->heads + p->head, factor[MOST];
    scores_of(a, p, a->width, a->scale, q, a->q_row, k, a->k_row, s);
    for (int64_t i = 0; i < p->rows; i++) {
        const int64_t begin = begin_of(a, p, p->first + i), end = end_of(a, p, p->first + i), seen = end - begin;
        float *x = s + i * n + begin - p->low, total = 0, above = 0;
        if (seen > 0) {
            if (a->bias)
                add_bias(a, p, p->first + i, x, begin, seen);
            above = largest(x, seen);
            above = above == -INFINITY ? 0 : above;
            total = exponentials(x, seen, above);
            if (a->dropped)
                drop(a, row + i, p->head, begin, x, seen);
            memset(s + i * n, 0, (size_t)(begin - p->low) * sizeof(float));
            memset(x + seen, 0, (size_t)(p->low + n - end) * sizeof(float));
        } else if (n)
            memset(s + i * n, 0, (size_t)n * sizeof(float));
        factor[i] = total == 0 ? 0 : 1 / total; /* a query that sees no key gives 0 */
        lse[i * a->heads] = total == 0 ? INFINITY : above + logf(total);
    }
    sum_over_keys(a, p, width, 1, s, v, a->v_row, out, out_row);
    for (int64_t i = 0; i < p->rows; i++) {
        APART
        for (int64_t j = 0; j < width; j++)
            out[i * out_row + j] *= factor[i];
    }
}

/* s, t and w: room for scores; w is s without dropout. */
INLINE void backward(const struct attention *a, const struct part *p, float *s, float *t, float *w)
{
    const int64_t n = p->keys, group = a->heads / a->kv_heads, kv = p->head / group, width = a->value_width;
    const int64_t out_row = a->heads * width, row = p->q + p->first, key = p->k + p->low;
    const int64_t v_row = a->kv_heads * width, k_row = a->kv_heads * a->width, q_row = a->heads * a->width;
    const float *q = a->q + row * a->q_row + p->head * a->q_head, *k = a->k + key * a->k_row + kv * a->k_head;
    const float *v = a->v + key * a->v_row + kv * a->v_head, *lse = a->lse + row * a->heads + p->head;
    const float *out = a->out + row * out_row + p->head * width, *g = a->out_grad + row * out_row + p->head * width;
    float *dq = a->q_grad + row * q_row + p->head * a->width, *dk = a->k_grad + key * k_row + kv * a->width;
    float *dv = a->v_grad + key * v_row + kv * width;
    scores_of(a, p, a->width, a->scale, q, a->q_row, k, a->k_row, s);
    scores_of(a, p, width, 1, g, out_row, v, a->v_row, t);
    for (int64_t i = 0; i < p->rows; i++) {
        const int64_t begin = begin_of(a, p, p->first + i), end = end_of(a, p, p->first + i);
        const int64_t seen = most(end - begin, 0), at = i * n + (seen ? begin - p->low : 0), rest = n - seen;
        float *x = s + at, *y = t + at, *z = w + at;
        const float inner = inner_product(out + i * out_row, g + i * out_row, width);
        if (seen) {
            if (a->bias)
                add_bias(a, p, p->first + i, x, begin, seen);
            exponentials(x, seen, lse[i * a->heads]);
            if (a->dropped) {
                memcpy(z, x, (size_t)seen * sizeof(float));
                drop(a, row + i, p->head, begin, z, seen);
            }
            APART
            for (int64_t j = 0; j < seen; j++)
                y[j] = z[j] * y[j] - x[j] * inner;
        }
        if (rest) {
            const size_t before = (size_t)(at - i * n), behind = (size_t)rest - before;
            memset(z - before, 0, before * sizeof(float));
            memset(y - before, 0, before * sizeof(float));
            memset(z + seen, 0, behind * sizeof(float));
            memset(y + seen, 0, behind * sizeof(float));
        }
    }
    add_over_queries(a, p, width, 1, w, g, out_row, dv, v_row);
    sum_over_keys(a, p, a->width, a->scale, t, k, a->k_row, dq, q_row);
    add_over_queries(a, p, a->width, a->scale, t, q, a->q_row, dk, k_row);
}

typedef void (*part_function)(const struct attention *a, const struct part *p, float *room, int64_t size);

INLINE void either(const struct attention *a, const struct part *p, float *room, int64_t size)
{
    if (a->out_grad)
        backward(a, p, room, room + size, a->dropped ? room + 2 * size : room);
    else
        forward(a, p, room);
}

static void either_narrow(const struct attention *a, const struct part *p, float *room, int64_t size)
{
    either(a, p, room, size);
}

static WIDE void either_wide(const struct attention *a, const struct part *p, float *room, int64_t size)
{
    either(a, p, room, size);
}

static WIDEST void either_widest(const struct attention *a, const struct part *p, float *room, int64_t size)
{
    either(a, p, room, size);
}

/* How many queries of a sequence go together. */
static int64_t at_once(const struct attention *a, int64_t queries, int64_t keys)
{
    int64_t rows = most(SCORES / most(keys, 1), FEWEST);
    return least(least(rows, a->before >= 0 || a->behind >= 0 ? STEP : MOST), queries);
}

static void share(void *data)
{
    struct attention *a = data;
    const part_function run = HAS_WIDEST ? either_widest : HAS_WIDE ? either_wide : either_narrow;
    const int64_t number = pool_number(), parts = pool_count(), group = a->heads / a->kv_heads;
    int64_t size = 0, work = 0, done = 0;
    for (int64_t i = 0; i < a->sequences; i++) {
        const int64_t queries = a->q_offsets[i + 1] - a->q_offsets[i], keys = a->k_offsets[i + 1] - a->k_offsets[i];
        size = most(size, at_once(a, queries, keys) * keys);
        work += a->kv_heads * queries * (keys + 1);
    }
    float *room = malloc((size_t)most(size, 1) * (a->out_grad ? 3 : 1) * sizeof(float));
    if (!room) {
        __atomic_store_n(&a->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t i = 0; i < a->sequences; i++) {
        struct part p = {.q = a->q_offsets[i], .k = a->k_offsets[i], .count = a->k_offsets[i + 1] - a->k_offsets[i]};
        const int64_t queries = a->q_offsets[i + 1] - p.q, step = at_once(a, queries, p.count);
        p.shift = a->from_end ? p.count - queries : 0;
        for (int64_t kv = 0; kv < a->kv_heads; kv++) {
            /* heads that share keys add to the same gradients, and so have one thread */
            const int64_t mine = work ? (int64_t)((double)done / (double)work * (double)parts) : 0;
            done += queries * (p.count + 1);
            if (least(mine, parts - 1) != number)
                continue;
            for (p.head = kv * group; p.head < (kv + 1) * group; p.head++)
                for (p.first = 0; p.first < queries; p.first += step) {
                    p.rows = least(step, queries - p.first);
                    p.low = begin_of(a, &p, p.first);
                    p.keys = most(end_of(a, &p, p.first + p.rows - 1) - p.low, 0);
                    run(a, &p, room, size);
                }
        }
    }
    free(room);
}

/* Returns 0, or 1 when there was no memory. Gradients of keys and values are added to what is there. */
EXPORTED int64_t oprack_attention(struct attention *attention, int64_t threads)
{
    attention->failed = 0;
    pool_run(share, attention, threads);
    return attention->failed;
}
