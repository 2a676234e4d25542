/* Functions that follow a product, and what Python says of them. */

#ifndef ONEDNN_FUNCTIONS_H
#define ONEDNN_FUNCTIONS_H

#include "native.h"
#include "numbers.h"

#include <stdint.h>

enum kind { RELU, CLIP, LOGISTIC, SWISH, HARD_SIGMOID, HARD_SWISH, LINEAR, TANH };

/* The fields are those of kernels/_steps.py, in its order. */
struct function {
    int64_t kind;
    double alpha, beta;
};

INLINE float limited(float x, float low, float high)
{
    x = x < low ? low : x; /* NaN stays NaN */
    return x > high ? high : x;
}

INLINE float vanishing_sigmoid(float x) { return x < -87.0f ? 0.0f : 1.0f / (1.0f + exponential(-x)); }

/* x = f(x), for some numbers. */
INLINE void apply(const struct function *f, float *x, int64_t count)
{
    const float a = (float)f->alpha, b = (float)f->beta;
    switch (f->kind) {
    case RELU:
        for (int64_t i = 0; i < count; i++)
            x[i] = x[i] > 0.0f ? x[i] : a ? a * x[i] : 0.0f; /* relu gives 0 for NaN, as Paddle's does */
        break;
    case CLIP:
        for (int64_t i = 0; i < count; i++)
            x[i] = limited(x[i], a, b);
        break;
    case LOGISTIC:
        for (int64_t i = 0; i < count; i++)
            x[i] = vanishing_sigmoid(x[i]);
        break;
    case SWISH:
        for (int64_t i = 0; i < count; i++)
            x[i] *= vanishing_sigmoid(a * x[i]);
        break;
    case HARD_SIGMOID:
        for (int64_t i = 0; i < count; i++)
            x[i] = limited(a * x[i] + b, 0.0f, 1.0f);
        break;
    case HARD_SWISH:
        for (int64_t i = 0; i < count; i++)
            x[i] *= limited(a * x[i] + b, 0.0f, 1.0f);
        break;
    case TANH:
        for (int64_t i = 0; i < count; i++)
            x[i] = hyperbolic(x[i]);
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            x[i] = a * x[i] + b;
    }
}

#endif
