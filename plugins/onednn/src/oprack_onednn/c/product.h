/* Products of rows with packed weights, compiled for one set of instructions: included once for each, after these
   macros.

   PRODUCT: the function's name; TILE: that of a part of it. INSTRUCTIONS: the attribute that chooses them. vector, LANES:
   a register. EACH(x): one number in all lanes. PLUS_PRODUCT(sum, a, b). ROWS: the most rows that are computed at a time;
   PAIRED and FEW: the most of which two and four blocks of columns are, since sums have to stay in registers.

   A sum goes down its column from the first row to the last, whatever the tile: numbers do not depend on how many rows
   there are. */

#define PER_BLOCK (COLUMNS / LANES)

INLINE INSTRUCTIONS void TILE(const float *a, int64_t a_row, const float *w, int64_t inner, const float *bias, float *out,
                              int64_t out_row, const int rows, const int blocks)
{
    vector sums[ROWS][4 * PER_BLOCK];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < blocks * PER_BLOCK; v++)
            sums[r][v] = bias ? ((const vector *)bias)[v] : EACH(0.0f);
    for (int64_t k = 0; k < inner; k++, w += COLUMNS) {
        vector columns[4 * PER_BLOCK];
        for (int v = 0; v < blocks * PER_BLOCK; v++)
            columns[v] = ((const vector *)(w + (v / PER_BLOCK) * inner * COLUMNS))[v % PER_BLOCK];
        for (int r = 0; r < rows; r++) {
            vector x = EACH(a[r * a_row + k]);
            for (int v = 0; v < blocks * PER_BLOCK; v++)
                sums[r][v] = PLUS_PRODUCT(sums[r][v], x, columns[v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < blocks * PER_BLOCK; v++)
            ((vector *)(out + r * out_row))[v] = sums[r][v];
}

#define OF_ROWS(n, most, blocks)                                                                                       \
    case 16 * blocks + n:                                                                                              \
        TILE(from, a_row, w, inner, b, to, out_row, n <= most ? n : 0, blocks);                                        \
        break;
#define OF_BLOCKS(n) OF_ROWS(n, FEW, 4) OF_ROWS(n, PAIRED, 2) OF_ROWS(n, ROWS, 1)

/* out = a w + bias. Rows of out have room for whole blocks of columns, and so has bias. */
static INSTRUCTIONS void PRODUCT(const float *a, int64_t a_row, int64_t rows, const float *w, int64_t inner,
                                 int64_t columns, const float *bias, float *out, int64_t out_row)
{
    const int64_t all = whole(columns) / COLUMNS, tiles = (rows + ROWS - 1) / ROWS;
    const int64_t largest = tiles ? (rows + tiles - 1) / tiles : 0; /* tiles of about as many rows */
    const int64_t most = largest <= FEW ? 4 : largest <= PAIRED ? 2 : 1;
    for (int64_t block = 0, blocks; block < all; block += blocks, w += blocks * inner * COLUMNS) {
        const float *b = bias ? bias + block * COLUMNS : NULL, *from = a;
        float *to = out + block * COLUMNS;
        for (blocks = most; blocks > all - block;)
            blocks /= 2;
        for (int64_t left = rows, count; left; left -= count, from += count * a_row, to += count * out_row) {
            count = left < largest ? left : largest;
            switch (16 * blocks + count) {
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
    }
}

#undef PRODUCT
#undef TILE
#undef INSTRUCTIONS
#undef vector
#undef LANES
#undef PER_BLOCK
#undef EACH
#undef PLUS_PRODUCT
#undef ROWS
#undef PAIRED
#undef FEW
#undef OF_ROWS
#undef OF_BLOCKS
