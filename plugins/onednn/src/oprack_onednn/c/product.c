/* Products of rows with packed matrices, for each kind of CPU. */

#include "product.h"
#include "native.h"

#include <stdint.h>
#include <string.h>

#define TOGETHER 48 /* rows, which are near while all columns go by */

#define NAMED(name) name##_narrow
#define TARGET
#define LANES 4
#define EACH(x) ((floats){x, x, x, x})
#define PLUS_PRODUCT(sum, a, b) ((sum) + (a) * (b))
#define ROWS 6
#define PAIRED 3
#define FEW 1
#include "product_tiles.h"

#ifdef POOL
#include <immintrin.h>

#define NAMED(name) name##_wide
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define EACH(x) ((floats)_mm256_set1_ps(x))
#define PLUS_PRODUCT(sum, a, b) ((floats)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(sum)))
#define ROWS 6
#define PAIRED 3
#define FEW 1
#include "product_tiles.h"

#define NAMED(name) name##_widest
#define TARGET WIDEST
#define LANES 16
#define EACH(x) ((floats)_mm512_set1_ps(x))
#define PLUS_PRODUCT(sum, a, b) ((floats)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(sum)))
#define ROWS 12
#define PAIRED 12
#define FEW 6
#include "product_tiles.h"
#endif

typedef void (*product_function)(const float *a, int64_t a_row, int64_t rows, const float *w, int64_t inner,
                                 int64_t columns, const float *bias, float *out, int64_t out_row);

static product_function chosen(void)
{
#ifdef POOL
    if (HAS_WIDEST)
        return product_widest;
    if (HAS_WIDE && __builtin_cpu_supports("fma"))
        return product_wide;
#endif
    return product_narrow;
}

void product(const float *a, int64_t a_row, int64_t rows, const float *w, int64_t inner, int64_t columns,
             const float *bias, float *out, int64_t out_row)
{
    const product_function function = chosen();
    for (int64_t row = 0; row < rows; row += TOGETHER)
        function(a + row * a_row, a_row, rows - row < TOGETHER ? rows - row : TOGETHER, w, inner, columns, bias,
                 out + row * out_row, out_row);
}

/* Numbers between the rows and between the columns of a matrix [inner, columns]. */
struct matrix {
    int64_t row, column, inner, columns;
    const float *from;
    float *to;
};

EXPORTED void oprack_pack(const struct matrix *m)
{
    for (int64_t first = 0; first < m->columns; first += COLUMNS) {
        const int64_t there = m->columns - first < COLUMNS ? m->columns - first : COLUMNS;
        const float *from = m->from + first * m->column;
        float *to = m->to + first * m->inner;
        for (int64_t k = 0; k < m->inner; k++, from += m->row, to += COLUMNS) {
            for (int64_t j = 0; j < there; j++)
                to[j] = from[j * m->column];
            memset(to + there, 0, (size_t)(COLUMNS - there) * sizeof(float));
        }
    }
}
