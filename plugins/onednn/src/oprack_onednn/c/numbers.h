/* Functions of numbers, for loops that a compiler turns into ones over vectors. */

#ifndef ONEDNN_NUMBERS_H
#define ONEDNN_NUMBERS_H

#include "native.h"

#include <stdint.h>

/* Within two units of the last place; NaN stays NaN. Cephes' polynomial. */
INLINE float exponential(float x)
{
    union { float number; int32_t bits; } power;
    x = x > 88.0f ? 88.0f : x;
    x = x < -87.0f ? -87.0f : x;
    float n = x * 1.44269504088896341f + 12582912.0f; /* to the nearest integer, by rounding of the sum */
    power.number = n;
    power.bits = (power.bits + 127) << 23;
    n -= 12582912.0f;
    x -= n * 0.693359375f;
    x -= n * -2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * x + 1.3981999507e-3f;
    y = y * x + 8.3334519073e-3f;
    y = y * x + 4.1665795894e-2f;
    y = y * x + 1.6666665459e-1f;
    y = y * x + 5.0000001201e-1f;
    return (y * x * x + x + 1.0f) * power.number;
}

/* As `exponential`, and 0 where that is no normal number. */
INLINE float vanishing_exponential(float x) { return x < -87.0f ? 0.0f : exponential(x); }

INLINE float sigmoid(float x)
{
    return 1.0f / (1.0f + exponential(-x));
}

INLINE float hyperbolic(float x)
{
    float z = x * x, far = 1.0f - 2.0f / (exponential(2.0f * x) + 1.0f);
    float near = -5.70498872745e-3f;
    near = near * z + 2.06390887954e-2f;
    near = near * z - 5.37397155531e-2f;
    near = near * z + 1.33314422036e-1f;
    near = near * z - 3.33332819422e-1f;
    near = near * z * x + x;
    return z < 0.390625f ? near : far; /* the difference would lose the digits of what is near 0 */
}

#endif
