/* Part of product.c, once for each kind of CPU. floats: a register of LANES numbers. EACH(x): one number in all lanes.
   PLUS_PRODUCT(sum, a, b). ROWS: the most rows that are computed at a time; PAIRED and FEW: the most of which two and four
   blocks of columns are, since sums have to stay in registers. */

#define PER_BLOCK (COLUMNS / LANES)
#define floats NAMED(floats)
typedef float floats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

INLINE TARGET void NAMED(tile)(const float *a, int64_t a_row, const float *w, int64_t inner, const float *bias, float *out,
                               int64_t out_row, const int rows, const int blocks)
{
    floats sums[ROWS][4 * PER_BLOCK];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < blocks * PER_BLOCK; v++)
            sums[r][v] = bias ? ((const floats *)bias)[v] : (floats){0};
    for (int64_t k = 0; k < inner; k++, w += COLUMNS) {
        floats columns[4 * PER_BLOCK];
        UNROLL for (int v = 0; v < blocks * PER_BLOCK; v++)
            columns[v] = ((const floats *)(w + (v / PER_BLOCK) * inner * COLUMNS))[v % PER_BLOCK];
        UNROLL for (int r = 0; r < rows; r++) {
            floats x = EACH(a[r * a_row + k]);
            UNROLL for (int v = 0; v < blocks * PER_BLOCK; v++)
                sums[r][v] = PLUS_PRODUCT(sums[r][v], x, columns[v]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < blocks * PER_BLOCK; v++)
            ((floats *)(out + r * out_row))[v] = sums[r][v];
}

#define OF_ROWS(n, most, blocks)                                                                                       \
    case 16 * blocks + n:                                                                                              \
        NAMED(tile)(a, a_row, w, inner, bias, out, out_row, n <= most ? n : 0, blocks);                                \
        break;
#define OF_BLOCKS(n) OF_ROWS(n, FEW, 4) OF_ROWS(n, PAIRED, 2) OF_ROWS(n, ROWS, 1)

/* Whole blocks of columns of some rows. */
static TARGET void NAMED(blocks)(const float *a, int64_t a_row, const float *w, int64_t inner, const float *bias, float *out,
                                 int64_t out_row, int64_t rows, int64_t blocks)
{
    switch (16 * blocks + rows) {
        OF_BLOCKS(1)
        OF_BLOCKS(2)
        OF_BLOCKS(3)
        OF_BLOCKS(4)
        OF_BLOCKS(5)
        OF_BLOCKS(6)
        OF_BLOCKS(7)
        OF_BLOCKS(8)
        OF_BLOCKS(9)
        OF_BLOCKS(10)
        OF_BLOCKS(11)
        OF_BLOCKS(12)
    }
}

static TARGET void NAMED(product)(const float *a, int64_t a_row, int64_t rows, const float *w, int64_t inner,
                                  int64_t columns, const float *bias, float *out, int64_t out_row)
{
    const int64_t all = columns / COLUMNS, rest = columns % COLUMNS, tiles = (rows + ROWS - 1) / ROWS;
    const int64_t largest = tiles ? (rows + tiles - 1) / tiles : 0; /* tiles of about as many rows */
    const int64_t most = largest <= FEW ? 4 : largest <= PAIRED ? 2 : 1;
    float edge[ROWS * COLUMNS], padded[COLUMNS] = {0};
    for (int64_t block = 0, blocks; block < all; block += blocks, w += blocks * inner * COLUMNS) {
        for (blocks = most; blocks > all - block;)
            blocks /= 2;
        for (int64_t row = 0, some; row < rows; row += some) {
            some = rows - row < largest ? rows - row : largest;
            NAMED(blocks)(a + row * a_row, a_row, w, inner, bias ? bias + block * COLUMNS : NULL,
                          out + row * out_row + block * COLUMNS, out_row, some, blocks);
        }
    }
    if (bias)
        memcpy(padded, bias + all * COLUMNS, (size_t)rest * sizeof(float));
    for (int64_t row = 0, some; rest && row < rows; row += some) {
        some = rows - row < largest ? rows - row : largest;
        NAMED(blocks)(a + row * a_row, a_row, w, inner, padded, edge, COLUMNS, some, 1);
        for (int64_t r = 0; r < some; r++)
            memcpy(out + (row + r) * out_row + all * COLUMNS, edge + r * COLUMNS, (size_t)rest * sizeof(float));
    }
}

#undef PER_BLOCK
#undef floats
#undef OF_ROWS
#undef OF_BLOCKS
#undef TARGET
#undef NAMED
#undef LANES
#undef EACH
#undef PLUS_PRODUCT
#undef ROWS
#undef PAIRED
#undef FEW
