/* New parameters and state by their gradients, element by element, which the threads of _pool.c share.

   NumPy goes over memory once for every operation. Here each number is read and written once, and the operations, and
   their order, are those of the kernels in NumPy, so that results are the same, bit by bit. */

#include "_pool.h"

#include <math.h>
#include <stdint.h>

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

#define LINE 16 /* floats of a cache line */

/* Elements of a loop depend on no other ones, though results may take the place of what they are made of. */
#if defined(__clang__)
#define APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define APART _Pragma("GCC ivdep")
#endif

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

static inline __attribute__((always_inline)) void sgd(const struct update *u, int64_t i, int64_t end)
{
    const float rate = u->numbers[0], *p = u->param, *g = u->grad;
    float *out = u->new_param;
    APART
    for (; i < end; i++)
        out[i] = p[i] - g[i] * rate;
}

static inline __attribute__((always_inline)) void momentum(const struct update *u, int64_t i, int64_t end, int ahead,
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

static inline __attribute__((always_inline)) void adam(const struct update *u, int64_t i, int64_t end)
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

static inline __attribute__((always_inline)) void apply(const struct update *u, int64_t begin, int64_t end)
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

#ifdef POOL
static __attribute__((target("avx2"))) void apply_wide(const struct update *u, int64_t begin, int64_t end)
{
    apply(u, begin, end);
}

static void share(void *data)
{
    const struct update *u = data;
    int64_t parts = pool_count(), lines = (u->count + LINE - 1) / LINE;
    int64_t begin = lines * pool_number() / parts * LINE, end = lines * (pool_number() + 1) / parts * LINE;
    if (end > u->count)
        end = u->count;
    if (__builtin_cpu_supports("avx2"))
        apply_wide(u, begin, end);
    else
        apply(u, begin, end);
}
#endif

EXPORTED void oprack_update(struct update *update, int64_t threads)
{
#ifdef POOL
    pool_start(share, update, (unsigned)threads);
    share(update);
    pool_end();
#else
    (void)threads;
    apply(update, 0, update->count);
#endif
}
