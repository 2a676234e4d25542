/* Layers of convolution.c: what is multiplied, what is added, and what follows. */

#ifndef ONEDNN_LAYERS_H
#define ONEDNN_LAYERS_H

#include "functions.h"
#include "native.h"

#include <stdint.h>

#ifdef POOL

#include <immintrin.h>

#define LANES 16
#define LAYERS 2
#define FUNCTIONS 2
#define GELU (-1)

typedef __m512 vec;

/* The first `count` numbers of a vector. */
INLINE __mmask16 lanes(int64_t count) { return count < LANES ? (__mmask16)((1 << count) - 1) : (__mmask16)0xffff; }

/* Numbers side by side: all of a vector where `whole`, else those that are there, and zeros in the place of others. */
INLINE WIDEST vec numbers(const float *from, __mmask16 there, const int whole)
{
    return whole ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(there, from);
}

INLINE WIDEST void put_numbers(float *to, vec x, __mmask16 there, const int whole)
{
    if (whole)
        _mm512_storeu_ps(to, x);
    else
        _mm512_mask_storeu_ps(to, there, x);
}

/* added_at: after how many functions the residual is added, or -1. */
struct layer {
    int64_t outputs, biased, halved, added_at, count;
    struct function functions[FUNCTIONS];
};

/* Pairs are (along rows, along columns). before: zeros above and to the left. */
struct convolution {
    int64_t images, height, width, channels; /* what is read */
    int64_t rows, columns;                   /* results */
    int64_t taps[2], strides[2], before[2];
    int64_t depthwise;     /* whether the first layer's groups are channels */
    int64_t plane;         /* numbers of a channel of row-major images; 0 where they are channels last */
    int64_t scaled;        /* whether pixels, which the first layer takes one by one, are times a scale of each image */
    int64_t places, count; /* threads at most; layers */
    struct layer layers[LAYERS];
};

/* Where the rows of a product lie, some in each line: `inner` numbers, which a row of taps reads side by side, for each of
   `taps` rows of taps, which are so far apart. */
struct from {
    const float *pixels;
    int64_t lines, line, pitch, inner, taps, apart;
};

/* What is added to sums, and what follows them. NULL where there is no such thing. sums: where the products alone are
   added as well. */
struct around {
    const struct layer *layer;
    const float *bias;
    const float *added, *begun;
    float *sums;
    int64_t added_row, begun_row, sums_row;
    int late, in_registers, follows; /* whether a function comes before the sum, the first is one of those that are applied
                                        in registers, and something is left to do behind them */
};

INLINE int64_t parts_of(int64_t count, int64_t size) { return (count + size - 1) / size; }
INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Whether a layer's first function can be applied to sums in registers: nothing is added behind them before it. */
INLINE int begins_in_registers(const struct layer *layer)
{
    if (!layer->count || layer->added_at > 0)
        return 0;
    const struct function *f = layer->functions;
    return f->kind == CLIP || f->kind == HARD_SIGMOID || f->kind == HARD_SWISH || f->kind == LINEAR
           || (f->kind == RELU && f->alpha == 0);
}

/* NaN stays NaN, but for relu, which gives 0: of two numbers that can't be compared, these instructions take the second. */
INLINE WIDEST void apply_in_registers(const struct function *f, vec *x, const int count)
{
    const vec a = _mm512_set1_ps((float)f->alpha), b = _mm512_set1_ps((float)f->beta);
    const vec none = _mm512_setzero_ps(), one = _mm512_set1_ps(1.0f);
    switch (f->kind) {
    case RELU:
        UNROLL for (int i = 0; i < count; i++)
            x[i] = _mm512_max_ps(x[i], none);
        break;
    case CLIP:
        UNROLL for (int i = 0; i < count; i++)
            x[i] = _mm512_min_ps(b, _mm512_max_ps(a, x[i]));
        break;
    case HARD_SWISH:
        UNROLL for (int i = 0; i < count; i++)
            x[i] *= _mm512_min_ps(one, _mm512_max_ps(none, a * x[i] + b));
        break;
    case HARD_SIGMOID:
        UNROLL for (int i = 0; i < count; i++)
            x[i] = _mm512_min_ps(one, _mm512_max_ps(none, a * x[i] + b));
        break;
    default:
        UNROLL for (int i = 0; i < count; i++)
            x[i] = a * x[i] + b;
    }
}

/* One or two layers, of which the second is one of single pixels: floats of scratch memory that all threads need, and the
   run. memory: images; weights of each layer; the scale; biases that are there; what is added to the last layer's
   results; scratch memory; results. */
int64_t convolution_room(const struct convolution *settings);
void convolution_run(const struct convolution *settings, void *const *memory, int64_t threads);

/* What of a layer is left to do to results whose first function was applied in registers where it could be. */
void layer_follow(const struct layer *layer, const float *added, int64_t added_row, float *out, int64_t out_row,
                  int64_t rows, int64_t width);

/* `rows` pixels of each line times columns begin ... end - 1, which are whole blocks of these but for the last ones of a
   layer. Weights stay in the caches while all rows go by. */
void layer_product(const struct from *from, int64_t rows, const float *w, int64_t begin, int64_t end,
                   const struct around *around, float *out, int64_t out_row);

/* The same of pixels for [inner, outputs] weights in halves: those of the seven products, in the order in which they are
   there. */
void layer_halved_product(const float *a, int64_t a_row, int64_t rows, const float *w, int64_t inner, int64_t outputs,
                          const struct around *around, float *out, int64_t out_row, float *scratch);

/* Where part `part` of `parts` of the columns begins: at a block. */
int64_t layer_column(int64_t outputs, int64_t part, int64_t parts);

/* Some rows of the results of a layer with a group for each channel. */
void layer_of_channels(const struct convolution *s, const float *image, int64_t begin, int64_t rows, const float *w,
                       const struct around *around, float *out);

#endif

#endif
