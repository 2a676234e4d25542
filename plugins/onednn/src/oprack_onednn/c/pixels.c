/* One or two layers of convolutions of one pixel: rows times weights, then what follows, for some rows at a time, so
   that what lies between two layers, and all that is read again, stays in the caches of a core. Nothing is made for a
   size.

   Large products are Strassen's, in Winograd's form: seven products of halves instead of eight, whose sums of weights
   are packed once (kernels/_pixels.py), and whose sums of results are where the next product of them begins. Halves of
   an odd number of rows share the row in the middle. Blocks of rows depend on how many there are alone, and so do
   numbers. */

#define _GNU_SOURCE
#include "native.h"
#include "pool.h"

#include <stdint.h>

#ifdef POOL

#include <immintrin.h>

#define LANES 16
#define ROWS 9   /* of a tile: with three vectors of columns, its sums and what is multiplied fill the 32 registers */
#define BLOCKS 3
#define LAYERS 2
#define POINTS 32
#define LAST_POINT 5.5f
#define WIDTH __attribute__((target("avx512f")))

typedef __m512 vec;

enum follows { NOTHING, RELU, GELU };

/* The fields are those of kernels/_pixels.py, in its order. */
struct layer {
    int64_t inputs, outputs, follows, biased, halved;
};

struct pixels {
    int64_t rows, block, places; /* rows: in all, at most of a block; parts of the scratch memory, one for a thread */
    int64_t room;                /* floats of such a part */
    int64_t count, added;        /* layers; whether something is added to the results before the last function */
    struct layer layers[LAYERS];
};

struct job {
    const struct pixels *pixels;
    void *const *memory;
};

/* What is added to sums, and what follows them. NULL where there is no such thing. sums: where the products alone are
   added as well. */
struct around {
    const float *bias;
    const float *added, *begun;
    float *sums;
    int64_t added_row, begun_row, sums_row;
    int64_t follows;
};

/* Phi(x) - 1/2 for x in [0, 5.5]: cubic polynomials around 32 points, the last of which is reached by all larger x. */
static const float gaussian[4][POINTS] = {
    {
        5.03210363e-18f, 7.04104304e-02f, 1.38644665e-01f, 2.02726200e-01f, 2.61047721e-01f, 3.12486440e-01f, 3.56452376e-01f,
        3.92869711e-01f, 4.22102123e-01f, 4.44841951e-01f, 4.61984426e-01f, 4.74507928e-01f, 4.83374238e-01f, 4.89457339e-01f,
        4.93501902e-01f, 4.96107936e-01f, 4.97735202e-01f, 4.98719901e-01f, 4.99297351e-01f, 4.99625504e-01f, 4.99806195e-01f,
        4.99902666e-01f, 4.99952555e-01f, 4.99977559e-01f, 4.99989688e-01f, 4.99995410e-01f, 4.99998003e-01f, 4.99999166e-01f,
        4.99999672e-01f, 4.99999881e-01f, 4.99999940e-01f, 5.00000000e-01f,
    },
    {
        7.07800686e-02f, 6.96747974e-02f, 6.64614588e-02f, 6.14318363e-02f, 5.50232939e-02f, 4.77561280e-02f, 4.01643775e-02f,
        3.27327475e-02f, 2.58495677e-02f, 1.97812412e-02f, 1.46684162e-02f, 1.05400421e-02f, 7.33889779e-03f, 4.95163677e-03f,
        3.23739788e-03f, 2.05103355e-03f, 1.25915394e-03f, 7.49055995e-04f, 4.31796449e-04f, 2.41197718e-04f, 1.30555956e-04f,
        6.84777478e-05f, 3.48041904e-05f, 1.71412667e-05f, 8.18057015e-06f, 3.78314917e-06f, 1.69532359e-06f, 7.36174854e-07f,
        3.09769405e-07f, 1.26306389e-07f, 4.99046742e-08f, 0.0f,
    },
    {
        -1.96305345e-17f, -1.09446654e-03f, -2.08811066e-03f, -2.89543066e-03f, -3.45833995e-03f, -3.75267398e-03f, -3.78819695e-03f,
        -3.60277528e-03f, -3.25262733e-03f, -2.80116941e-03f, -2.30885530e-03f, -1.82573020e-03f, -1.38745748e-03f, -1.01466721e-03f,
        -7.14821217e-04f, -4.85508790e-04f, -3.18133621e-04f, -2.01219242e-04f, -1.22905520e-04f, -7.25233767e-05f, -4.13549169e-05f,
        -2.27948367e-05f, -1.21480643e-05f, -6.26075462e-06f, -3.12084148e-06f, -1.50490564e-06f, -7.02099328e-07f, -3.16950974e-07f,
        -1.38463903e-07f, -5.85428523e-08f, -2.39575026e-08f, 0.0f,
    },
    {
        -3.70893540e-04f, -3.53622687e-04f, -3.04463174e-04f, -2.30809339e-04f, -1.43255820e-04f, -5.34887004e-05f, 2.78575844e-05f,
        9.28825830e-05f, 1.37321302e-04f, 1.60586482e-04f, 1.65098958e-04f, 1.55198402e-04f, 1.35963099e-04f, 1.12209644e-04f,
        8.78291103e-05f, 6.54941687e-05f, 4.66769088e-05f, 3.18675702e-05f, 2.08790243e-05f, 1.31456536e-05f, 7.96230597e-06f,
        4.64369577e-06f, 2.60958836e-06f, 1.41392422e-06f, 7.39004975e-07f, 3.72755437e-07f, 1.81517194e-07f, 8.53628421e-08f,
        3.87792518e-08f, 1.70222396e-08f, 7.22130311e-09f, 0.0f,
    },
};

/* x Phi(x) = x / 2 + |x| (Phi(|x|) - 1/2) */
INLINE WIDTH void gelu(float *out, int64_t out_row, int64_t rows, int64_t vectors)
{
    __m512 low[4], high[4];
    const vec scale = _mm512_set1_ps((POINTS - 1) / LAST_POINT), magic = _mm512_set1_ps(12582912.0f);
    UNROLL for (int i = 0; i < 4; i++) {
        low[i] = _mm512_loadu_ps(gaussian[i]);
        high[i] = _mm512_loadu_ps(gaussian[i] + LANES);
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t v = 0; v < vectors; v++) {
            float *place = out + r * out_row + v * LANES;
            vec x = _mm512_loadu_ps(place), far = _mm512_abs_ps(x);
            vec near = _mm512_min_ps(far, _mm512_set1_ps(LAST_POINT));
            vec rounded = _mm512_fmadd_ps(near, scale, magic); /* its last bits are the number of the next point */
            __m512i point = _mm512_castps_si512(rounded);
            vec from = _mm512_fmsub_ps(near, scale, _mm512_sub_ps(rounded, magic));
            vec y = _mm512_permutex2var_ps(low[3], point, high[3]);
            UNROLL for (int i = 2; i >= 0; i--)
                y = _mm512_fmadd_ps(y, from, _mm512_permutex2var_ps(low[i], point, high[i]));
            _mm512_storeu_ps(place, _mm512_fmadd_ps(far, y, _mm512_mul_ps(x, _mm512_set1_ps(0.5f))));
        }
}

/* Add bias, what was begun and what is added to some sums. */
INLINE WIDTH void plus(vec sums[ROWS][BLOCKS], const struct around *around, const int rows, const int vectors)
{
    if (around->bias)
        UNROLL for (int v = 0; v < vectors; v++) {
            vec bias = _mm512_loadu_ps(around->bias + v * LANES);
            UNROLL for (int r = 0; r < rows; r++)
                sums[r][v] += bias;
        }
    if (around->begun)
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < vectors; v++)
                sums[r][v] += _mm512_loadu_ps(around->begun + r * around->begun_row + v * LANES);
    if (around->added)
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < vectors; v++)
                sums[r][v] += _mm512_loadu_ps(around->added + r * around->added_row + v * LANES);
}

/* Some rows times some vectors of columns, whose weights lie row by row; next: weights that will be needed soon. */
INLINE WIDTH void tile(const float *a, int64_t a_row, const float *w, int64_t inner, const struct around *around,
                       float *out, int64_t out_row, const float *next, const int rows, const int vectors)
{
    vec sums[ROWS][BLOCKS], columns[BLOCKS];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++)
            sums[r][v] = _mm512_setzero_ps();
    if (!around->sums)
        plus(sums, around, rows, vectors);
    for (int64_t k = 0; k < inner; k++, w += vectors * LANES) {
        _mm_prefetch((const char *)(next + k * LANES), _MM_HINT_T0);
        UNROLL for (int v = 0; v < vectors; v++)
            columns[v] = _mm512_loadu_ps(w + v * LANES);
        UNROLL for (int r = 0; r < rows; r++) {
            vec x = _mm512_set1_ps(a[r * a_row + k]);
            UNROLL for (int v = 0; v < vectors; v++)
                sums[r][v] = _mm512_fmadd_ps(x, columns[v], sums[r][v]);
        }
    }
    if (around->sums) {
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < vectors; v++) {
                float *place = around->sums + r * around->sums_row + v * LANES;
                _mm512_storeu_ps(place, _mm512_loadu_ps(place) + sums[r][v]);
            }
        plus(sums, around, rows, vectors);
    }
    if (around->follows == RELU)
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < vectors; v++) {
                __mmask16 below = _mm512_cmp_ps_mask(sums[r][v], _mm512_setzero_ps(), _CMP_LT_OQ); /* NaN stays NaN */
                sums[r][v] = _mm512_mask_mov_ps(sums[r][v], below, _mm512_setzero_ps());
            }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++)
            _mm512_storeu_ps(out + r * out_row + v * LANES, sums[r][v]);
    if (around->follows == GELU)
        gelu(out, out_row, rows, vectors);
}

#define OF_ROWS(n)                                                                                                     \
    case n:                                                                                                            \
        tile(a, a_row, w, inner, around, out, out_row, next, n, vectors);                                              \
        break;

INLINE WIDTH void some_rows(const float *a, int64_t a_row, const float *w, int64_t inner, const struct around *around,
                            float *out, int64_t out_row, const float *next, int64_t rows, const int vectors)
{
    switch (rows) {
        OF_ROWS(1)
        OF_ROWS(2)
        OF_ROWS(3)
        OF_ROWS(4)
        OF_ROWS(5)
        OF_ROWS(6)
        OF_ROWS(7)
        OF_ROWS(8)
        OF_ROWS(9)
    }
}

static WIDTH void product(const float *a, int64_t a_row, int64_t rows, const float *w, int64_t inner, int64_t outputs,
                          struct around around, float *out, int64_t out_row)
{
    const int64_t tiles = (rows + ROWS - 1) / ROWS, all = outputs / LANES;
    for (int64_t first = 0, vectors; first < all; first += vectors) {
        /* as in kernels/_pixels.py */
        vectors = all - first == 4 ? 2 : all - first < BLOCKS ? all - first : BLOCKS;
        const float *behind = w + vectors * LANES * inner;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t begin = rows * t / tiles, count = rows * (t + 1) / tiles - begin;
            const float *from = a + begin * a_row, *next = behind + (t < vectors ? t * LANES * inner : 0);
            float *to = out + begin * out_row + first * LANES;
            struct around here = around;
            if (here.bias)
                here.bias += first * LANES;
            if (here.begun)
                here.begun += begin * here.begun_row + first * LANES;
            if (here.added)
                here.added += begin * here.added_row + first * LANES;
            if (here.sums)
                here.sums += begin * here.sums_row + first * LANES;
            if (vectors == 3)
                some_rows(from, a_row, w, inner, &here, to, out_row, next, count, 3);
            else if (vectors == 2)
                some_rows(from, a_row, w, inner, &here, to, out_row, next, count, 2);
            else
                some_rows(from, a_row, w, inner, &here, to, out_row, next, count, 1);
        }
        w = behind;
    }
}

/* The same for [inner, outputs] weights in halves: those of the seven products, in the order in which they are here. */
static WIDTH void halved_product(const float *a, int64_t a_row, int64_t rows, const float *w, int64_t inner,
                                 int64_t outputs, const struct around *around, float *out, int64_t out_row,
                                 float *scratch)
{
    const int64_t m = (rows + 1) / 2, k = inner / 2, n = outputs / 2, part = k * n, below = rows - m;
    float *s1 = scratch, *s2 = s1 + m * k, *s3 = s2 + m * k, *s4 = s3 + m * k, *u = s4 + m * k, *u3 = u + m * n;
    for (int64_t r = 0; r < m; r++)
        for (int64_t c = 0; c < k; c += LANES) {
            const float *from = a + r * a_row + c, *under = from + below * a_row;
            vec a11 = _mm512_loadu_ps(from), a12 = _mm512_loadu_ps(from + k);
            vec a21 = _mm512_loadu_ps(under), sum = a21 + _mm512_loadu_ps(under + k), rest = sum - a11;
            _mm512_storeu_ps(s1 + r * k + c, sum);
            _mm512_storeu_ps(s2 + r * k + c, rest);
            _mm512_storeu_ps(s3 + r * k + c, a11 - a21);
            _mm512_storeu_ps(s4 + r * k + c, a12 - rest);
        }
    struct around none = {0}, first = *around, lower = *around, both, from_u = {.begun = u, .begun_row = n};
    first.begun = u, first.begun_row = n;
    lower.begun = u3, lower.begun_row = n;
    if (lower.added)
        lower.added += below * lower.added_row;
    product(a, a_row, m, w, k, n, none, u, n);
    product(a + k, a_row, m, w + part, k, n, first, out, out_row);
    product(s2, k, m, w + 2 * part, k, n, from_u, u, n);
    product(s3, k, m, w + 3 * part, k, n, from_u, u3, n);
    product(a + below * a_row + k, a_row, m, w + 4 * part, k, n, lower, out + below * out_row, out_row);
    /* the other half of the columns */
    if (first.bias)
        first.bias += n, lower.bias += n;
    if (first.added)
        first.added += n, lower.added += n;
    both = lower, both.sums = u, both.sums_row = n;
    product(s1, k, m, w + 5 * part, k, n, both, out + below * out_row + n, out_row);
    product(s4, k, m, w + 6 * part, k, n, first, out + n, out_row);
}

static WIDTH void share(void *data)
{
    const struct job *job = data;
    const struct pixels *p = job->pixels;
    const int64_t shares = pool_count(), own = pool_number(), blocks = (p->rows + p->block - 1) / p->block;
    const struct layer *last = p->layers + p->count - 1;
    /* memory: rows; weights of each layer; biases that are there; what is added; scratch memory; results */
    void *const *memory = job->memory + 1 + p->count;
    const float *biases[LAYERS] = {NULL};
    for (int64_t i = 0; i < p->count; i++)
        if (p->layers[i].biased)
            biases[i] = *memory++;
    const float *added = p->added ? *memory++ : NULL;
    float *scratch = (float *)memory[0] + own * p->room, *results = memory[1];
    for (int64_t b = blocks * own / shares; b < blocks * (own + 1) / shares; b++) {
        const int64_t begin = p->rows * b / blocks, rows = p->rows * (b + 1) / blocks - begin;
        const float *a = (const float *)job->memory[0] + begin * p->layers[0].inputs;
        float *between = scratch, *rest = scratch;
        for (const struct layer *layer = p->layers; layer <= last; layer++) {
            const int64_t i = layer - p->layers;
            struct around around = {.bias = biases[i], .follows = layer->follows};
            float *out = results + begin * layer->outputs;
            if (layer < last)
                out = between, rest = between + rows * layer->outputs;
            else if (added)
                around.added = added + begin * layer->outputs, around.added_row = layer->outputs;
            if (layer->halved)
                halved_product(a, layer->inputs, rows, job->memory[1 + i], layer->inputs, layer->outputs, &around, out,
                               layer->outputs, rest);
            else
                product(a, layer->inputs, rows, job->memory[1 + i], layer->inputs, layer->outputs, around, out,
                        layer->outputs);
            a = out;
        }
    }
}

EXPORTED int oprack_pixels_serves(void) { return __builtin_cpu_supports("avx512f"); }

EXPORTED int oprack_pixels(const void *settings, void *const *memory, int64_t threads)
{
    const struct pixels *pixels = settings;
    struct job job = {pixels, memory};
    pool_run(share, &job, threads < pixels->places ? threads : pixels->places);
    return 0;
}

#else

EXPORTED int oprack_pixels_serves(void) { return 0; }

EXPORTED int oprack_pixels(const void *settings, void *const *memory, int64_t threads)
{
    (void)settings, (void)memory, (void)threads;
    return 1;
}

#endif
