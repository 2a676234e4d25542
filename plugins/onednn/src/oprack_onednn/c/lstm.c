/* The way back of a direction of a layer of LSTMs that is trained: the gradients of the gates in all steps, from which
   products of whole matrices give all others. */

#include "native.h"
#include "numbers.h"
#include "pool.h"
#include "product.h"

#include <stddef.h>
#include <stdint.h>

#define KEPT 6 /* numbers of a row of `kept`, in units of size: i, f, g, o, c and h of a sequence */

/* h, c: the states before the first step, of which c is read. w_state: [4 size, size], packed. out: the gradients of h, of
   whose rows, which may be parts of longer ones, and steps it is said how far they are apart. dh and dc have the gradients
   of the last states, and get those of the first ones; d gets those of the gates, [steps, batch, 4 size]. */
struct lstm {
    int64_t steps, batch, size, reverse, out_step, out_row;
    const float *w_state, *kept, *c, *out;
    float *dh, *dc, *d;
};

INLINE void gradients_of_gates(int64_t n, const float *kept, const float *before, const float *out, const float *dh,
                               float *dc, float *d)
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

/* All steps of the sequences of the calling thread. */
INLINE void work(const struct lstm *s)
{
    const int64_t n = s->size, number = pool_number(), parts = pool_count();
    const int64_t begin = s->batch * number / parts, end = s->batch * (number + 1) / parts;
    for (int64_t k = s->steps - 1; k >= 0; k--) {
        const int64_t step = s->reverse ? s->steps - 1 - k : k, before = s->reverse ? step + 1 : step - 1;
        float *d = s->d + step * s->batch * 4 * n;
        for (int64_t r = begin; r < end; r++) {
            const float *c = k ? s->kept + ((before * s->batch + r) * KEPT + 4) * n : s->c + r * n;
            gradients_of_gates(n, s->kept + (step * s->batch + r) * KEPT * n, c, s->out + step * s->out_step + r * s->out_row,
                               s->dh + r * n, s->dc + r * n, d + r * 4 * n);
        }
        product(d + begin * 4 * n, 4 * n, end - begin, s->w_state, 4 * n, n, NULL, s->dh + begin * n, n);
    }
}

static void work_narrow(void *data) { work(data); }
static WIDE void work_wide(void *data) { work(data); }
static WIDEST void work_widest(void *data) { work(data); }

EXPORTED void oprack_lstm_back(struct lstm *s, int64_t threads)
{
    pool_run(HAS_WIDEST ? work_widest : HAS_WIDE ? work_wide : work_narrow, s, threads);
}
