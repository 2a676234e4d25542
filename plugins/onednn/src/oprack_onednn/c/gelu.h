/* gelu for vectors of AVX-512. */

#ifndef ONEDNN_GELU_H
#define ONEDNN_GELU_H

#include "layers.h"

#ifdef POOL

#define POINTS 32
#define LAST_POINT 5.5f

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
static WIDEST void gelu(float *out, int64_t out_row, int64_t rows, int64_t width)
{
    __m512 low[4], high[4];
    const vec scale = _mm512_set1_ps((POINTS - 1) / LAST_POINT), magic = _mm512_set1_ps(12582912.0f);
    UNROLL for (int i = 0; i < 4; i++) {
        low[i] = _mm512_loadu_ps(gaussian[i]);
        high[i] = _mm512_loadu_ps(gaussian[i] + LANES);
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c += LANES) {
            float *place = out + r * out_row + c;
            const __mmask16 there = lanes(width - c);
            vec x = _mm512_maskz_loadu_ps(there, place), far = _mm512_abs_ps(x);
            vec near = _mm512_min_ps(far, _mm512_set1_ps(LAST_POINT));
            vec rounded = _mm512_fmadd_ps(near, scale, magic); /* its last bits are the number of the next point */
            __m512i point = _mm512_castps_si512(rounded);
            vec from = _mm512_fmsub_ps(near, scale, _mm512_sub_ps(rounded, magic));
            vec y = _mm512_permutex2var_ps(low[3], point, high[3]);
            UNROLL for (int i = 2; i >= 0; i--)
                y = _mm512_fmadd_ps(y, from, _mm512_permutex2var_ps(low[i], point, high[i]));
            _mm512_mask_storeu_ps(place, there, _mm512_fmadd_ps(far, y, _mm512_mul_ps(x, _mm512_set1_ps(0.5f))));
        }
}

#endif

#endif
