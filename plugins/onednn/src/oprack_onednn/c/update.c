/* New parameters and state by their gradients, element by element, which the threads of pool.c share.

   NumPy goes over memory once for every operation. Here each number is read and written once, and the operations, and
   their order, are those of the kernels in NumPy, so that results are the same, bit by bit. */

#include "native.h"
#include "pool.h"

#include <math.h>
#include <stdint.h>

#define LINE 16 /* floats of a cache line */
#define BLOCK 1024 /* floats of new state that are made at a time before they are written past the caches */
#define LARGE (1 << 18) /* floats of a parameter from which on they are: nobody reads them before the next step */

enum rule { SGD, MOMENTUM, NESTEROV, ADAM };

/* numbers: of SGD the rate; of MOMENTUM and NESTEROV the rate, mu, the factor of the gradient, and how much of the
   parameter is added to it; of ADAM the shares of the old and new first moment, those of the second one, epsilon and the
   rate. */
struct update {
    int64_t rule, count;
    const float *param, *grad, *first, *second;
    float *new_param, *new_first, *new_second;
    float numbers[6];
};

INLINE void sgd(const struct update *u, int64_t i, int64_t end)
{
    const float rate = u->numbers[0], *p = u->param, *g = u->grad;
    float *out = u->new_param;
    APART
    for (; i < end; i++)
        out[i] = p[i] - g[i] * rate;
}

INLINE void momentum(const struct update *u, int64_t i, int64_t end, int ahead,
                                                           int decays)
{
    const float rate = u->numbers[0], mu = u->numbers[1], factor = u->numbers[2], decay = u->numbers[3];
    const float *p = u->param, *grad = u->grad, *velocity = u->first;
    float *out = u->new_param, *new_velocity = u->new_first;
    APART
    for (; i < end; i++) {
        float g = grad[i] * factor;
        g = decays ? g + decay * p[i] : g;
        float v = velocity[i] * mu + g;
        new_velocity[i] = v;
        out[i] = p[i] - (ahead ? g + v * mu : v) * rate;
    }
}

INLINE void adam(const struct update *u, int64_t i, int64_t end)
{
    const float keep1 = u->numbers[0], add1 = u->numbers[1], keep2 = u->numbers[2], add2 = u->numbers[3];
    const float epsilon = u->numbers[4], rate = u->numbers[5];
    const float *p = u->param, *g = u->grad, *first = u->first, *second = u->second;
    float *out = u->new_param, *new_first = u->new_first, *new_second = u->new_second;
    APART
    for (; i < end; i++) {
        float m1 = first[i] * keep1 + g[i] * add1;
        float m2 = second[i] * keep2 + g[i] * g[i] * add2;
        new_first[i] = m1;
        new_second[i] = m2;
        out[i] = p[i] - m1 / (sqrtf(m2) + epsilon) * rate;
    }
}

INLINE void apply(const struct update *u, int64_t begin, int64_t end)
{
    int decays = u->numbers[3] != 0;
    switch (u->rule) {
    case SGD:
        sgd(u, begin, end);
        break;
    case MOMENTUM:
        decays ? momentum(u, begin, end, 0, 1) : momentum(u, begin, end, 0, 0);
        break;
    case NESTEROV:
        decays ? momentum(u, begin, end, 1, 1) : momentum(u, begin, end, 1, 0);
        break;
    case ADAM:
        adam(u, begin, end);
    }
}

static WIDE void apply_wide(const struct update *u, int64_t begin, int64_t end) { apply(u, begin, end); }

#ifdef POOL
#include <immintrin.h>

/* As `apply`, where the new state has whole cache lines of its own; its memory is not read first then. */
static WIDE void apply_past(const struct update *u, int64_t begin, int64_t end)
{
    float first[BLOCK] __attribute__((aligned(64))), second[BLOCK] __attribute__((aligned(64)));
    for (int64_t i = begin; i < end; i += BLOCK) {
        int64_t some = end - i < BLOCK ? end - i : BLOCK;
        struct update part = *u;
        part.new_first = first - i;
        part.new_second = second - i;
        apply(&part, i, i + some);
        for (int64_t j = 0; j < some; j += 4) {
            _mm_stream_ps(u->new_first + i + j, _mm_load_ps(first + j));
            if (u->new_second)
                _mm_stream_ps(u->new_second + i + j, _mm_load_ps(second + j));
        }
    }
    _mm_sfence();
}

/* Whether new state of `count` numbers, if there is any, may be written by lines. */
static int is_past(const struct update *u)
{
    uintptr_t at = (uintptr_t)u->new_first | (uintptr_t)u->new_second;
    return HAS_WIDE && u->new_first && u->count >= LARGE && !(u->count % LINE) && !(at & 63);
}
#else
#define is_past(u) 0
#define apply_past apply_wide
#endif

static void share(void *data)
{
    const struct update *u = data;
    int64_t parts = pool_count(), lines = (u->count + LINE - 1) / LINE;
    int64_t begin = lines * pool_number() / parts * LINE, end = lines * (pool_number() + 1) / parts * LINE;
    if (end > u->count)
        end = u->count;
    if (is_past(u))
        apply_past(u, begin, end);
    else if (HAS_WIDE)
        apply_wide(u, begin, end);
    else
        apply(u, begin, end);
}

EXPORTED void oprack_update(struct update *update, int64_t threads)
{
    pool_run(share, update, threads);
}
