/* Rows of any size that are normalized: layer_norm, softmax and log_softmax. */

#include "layers.h"

#include <math.h>

#ifdef POOL

#define WAYS 4 /* vectors of sums, which do not wait for each other */

/* The fields are those of kernels/layer_norm.py, in its order. */
struct layer_norm {
    int64_t rows, columns, scaled, shifted;
    double epsilon;
};

/* The fields are those of kernels/softmax.py, in its order. */
struct softmax {
    int64_t rows, columns, logarithm;
};

struct job {
    const void *settings;
    const float *x, *scale, *shift;
    float *y, *mean, *variance;
};

/* The calling thread's rows of so many. */
struct share {
    int64_t begin, end;
};

INLINE struct share share_of(int64_t rows)
{
    const int64_t number = pool_number(), parts = pool_count();
    return (struct share){rows * number / parts, rows * (number + 1) / parts};
}

/* The sum of x - center, or of its squares. */
INLINE WIDEST float moment(const float *x, int64_t n, float center, const int squared)
{
    const vec centers = _mm512_set1_ps(center);
    vec sums[WAYS];
    UNROLL for (int way = 0; way < WAYS; way++)
        sums[way] = _mm512_setzero_ps();
    int64_t j = 0;
    for (; j + WAYS * LANES <= n; j += WAYS * LANES)
        UNROLL for (int way = 0; way < WAYS; way++) {
            const vec d = _mm512_loadu_ps(x + j + way * LANES) - centers;
            sums[way] = squared ? _mm512_fmadd_ps(d, d, sums[way]) : _mm512_add_ps(sums[way], d);
        }
    for (int way = 0; j < n; j += LANES, way++) {
        const __mmask16 there = lanes(n - j);
        const vec d = _mm512_maskz_sub_ps(there, _mm512_maskz_loadu_ps(there, x + j), centers);
        UNROLL for (int each = 0; each < WAYS; each++) /* so that all stay in registers */
            if (each == way)
                sums[each] = squared ? _mm512_fmadd_ps(d, d, sums[each]) : _mm512_add_ps(sums[each], d);
    }
    return _mm512_reduce_add_ps((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/* Numbers of a row from the j-th on: all of a vector where `whole`. */
INLINE WIDEST void normalize(const struct job *job, const float *x, float *y, int64_t j, vec center, vec factor,
                             __mmask16 there, const int whole)
{
    vec result = _mm512_mul_ps(_mm512_sub_ps(numbers(x + j, there, whole), center), factor);
    if (job->scale)
        result = _mm512_mul_ps(result, numbers(job->scale + j, there, whole));
    if (job->shift)
        result = _mm512_add_ps(result, numbers(job->shift + j, there, whole));
    put_numbers(y + j, result, there, whole);
}

static WIDEST void share_layer_norm(void *data)
{
    const struct job job = *(const struct job *)data;
    const struct layer_norm *s = job.settings;
    const int64_t n = s->columns, whole = n / LANES * LANES;
    const struct share own = share_of(s->rows);
    for (int64_t i = own.begin; i < own.end; i++) {
        const float *x = job.x + i * n;
        const float mean = moment(x, n, 0.0f, 0) / (float)n, variance = moment(x, n, mean, 1) / (float)n;
        const vec center = _mm512_set1_ps(mean), factor = _mm512_set1_ps(1.0f / sqrtf(variance + (float)s->epsilon));
        job.mean[i] = mean;
        job.variance[i] = variance;
        for (int64_t j = 0; j < whole; j += LANES)
            normalize(&job, x, job.y + i * n, j, center, factor, 0xffff, 1);
        if (whole < n)
            normalize(&job, x, job.y + i * n, whole, center, factor, lanes(n - whole), 0);
    }
}

/* e to the power of x, within two units of the last place, for x up to 0; 0 where that is no normal number. NaN stays NaN.
   Cephes' polynomial. */
INLINE WIDEST vec powers(vec x)
{
    const __mmask16 vanishes = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.0f), _CMP_LT_OQ);
    const vec n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341f)), 8);
    vec r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
    vec y = _mm512_set1_ps(1.9875691500e-4f);
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.3981999507e-3f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(8.3334519073e-3f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(4.1665795894e-2f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.6666665459e-1f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(5.0000001201e-1f));
    y = _mm512_fmadd_ps(_mm512_mul_ps(y, r), r, _mm512_add_ps(r, _mm512_set1_ps(1.0f)));
    return _mm512_mask_mov_ps(_mm512_scalef_ps(y, n), vanishes, _mm512_setzero_ps());
}

INLINE WIDEST float largest(const float *x, int64_t n)
{
    const vec least = _mm512_set1_ps(-INFINITY);
    vec found[2] = {least, least};
    int64_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES)
        UNROLL for (int way = 0; way < 2; way++)
            found[way] = _mm512_max_ps(found[way], _mm512_loadu_ps(x + j + way * LANES));
    for (; j < n; j += LANES)
        found[0] = _mm512_max_ps(found[0], _mm512_mask_loadu_ps(least, lanes(n - j), x + j));
    return _mm512_reduce_max_ps(_mm512_max_ps(found[0], found[1]));
}

/* The sum of e to the power of x - above, which y becomes where it is not NULL. */
INLINE WIDEST float sum_of_powers(const float *x, int64_t n, float above, float *y)
{
    const vec shift = _mm512_set1_ps(above);
    vec sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    int64_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES)
        UNROLL for (int way = 0; way < 2; way++) {
            const vec power = powers(_mm512_sub_ps(_mm512_loadu_ps(x + j + way * LANES), shift));
            if (y)
                _mm512_storeu_ps(y + j + way * LANES, power);
            sums[way] = _mm512_add_ps(sums[way], power);
        }
    for (; j < n; j += LANES) {
        const __mmask16 there = lanes(n - j);
        const vec power = powers(_mm512_sub_ps(_mm512_maskz_loadu_ps(there, x + j), shift));
        if (y)
            _mm512_mask_storeu_ps(y + j, there, power);
        sums[0] = _mm512_mask_add_ps(sums[0], there, sums[0], power);
    }
    return _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]));
}

/* y = (x - a) b, or x - a - b. */
INLINE WIDEST void shift(const float *x, float *y, int64_t n, float a, float b, const int logarithm)
{
    const vec first = _mm512_set1_ps(a), second = _mm512_set1_ps(b);
    for (int64_t j = 0; j < n; j += LANES) {
        const int whole = j + LANES <= n;
        const __mmask16 there = lanes(n - j);
        const vec below = _mm512_sub_ps(numbers(x + j, there, whole), first);
        put_numbers(y + j, logarithm ? _mm512_sub_ps(below, second) : _mm512_mul_ps(below, second), there, whole);
    }
}

static WIDEST void share_softmax(void *data)
{
    const struct job job = *(const struct job *)data;
    const struct softmax *s = job.settings;
    const int64_t n = s->columns;
    const struct share own = share_of(s->rows);
    for (int64_t i = own.begin; i < own.end; i++) {
        const float *x = job.x + i * n;
        float *y = job.y + i * n, above = largest(x, n);
        if (s->logarithm)
            shift(x, y, n, above, logf(sum_of_powers(x, n, above, NULL)), 1);
        else
            shift(y, y, n, 0.0f, 1.0f / sum_of_powers(x, n, above, y), 0);
    }
}

/* memory: rows; scale and shift, which may be absent; results, the mean and the variance of each row. */
EXPORTED int oprack_layer_norm(const void *settings, void *const *memory, int64_t threads)
{
    const struct layer_norm *s = settings;
    struct job job = {.settings = s, .x = *memory++};
    job.scale = s->scaled ? *memory++ : NULL;
    job.shift = s->shifted ? *memory++ : NULL;
    job.y = *memory++;
    job.mean = *memory++;
    job.variance = *memory;
    pool_run(share_layer_norm, &job, threads);
    return 0;
}

/* memory: rows; results, which may take their place. */
EXPORTED int oprack_softmax(const void *settings, void *const *memory, int64_t threads)
{
    const struct softmax *s = settings;
    struct job job = {.settings = s, .x = memory[0], .y = memory[1]};
    pool_run(share_softmax, &job, threads);
    return 0;
}

#else

UNSERVED(oprack_layer_norm)
UNSERVED(oprack_softmax)

#endif
