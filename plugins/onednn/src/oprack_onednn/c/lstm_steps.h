/* Part of lstm.c, once for each kind of CPU: floats of LANES numbers, and ROWS rows of a product at a time, whose sums fill
   the registers. */

#define floats NAMED(floats)
#define BLOCK (GATES * LANES)
typedef float floats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* `rows` rows of x times a block of weights, GATES vectors to a row, and what is `from`. */
static inline __attribute__((always_inline)) TARGET void NAMED(tile)(const float *x, int64_t x_row, int64_t x_step,
                                                                    const float *w, int64_t inner, const float *from, int64_t from_row,
                                                                    float *out, int64_t out_row, const int rows)
{
    floats sums[ROWS][GATES];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < GATES; v++)
            sums[r][v] = ((const floats *)(from + r * from_row))[v];
    for (int64_t k = 0; k < inner; k++, w += BLOCK, x += x_step) {
        floats columns[GATES];
        for (int v = 0; v < GATES; v++)
            columns[v] = ((const floats *)w)[v];
        for (int r = 0; r < rows; r++) {
            floats each = x[r * x_row] - (floats){0};
            for (int v = 0; v < GATES; v++)
                sums[r][v] = PLUS_PRODUCT(sums[r][v], each, columns[v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < GATES; v++)
            ((floats *)(out + r * out_row))[v] = sums[r][v];
}

#define TILE(rows) NAMED(tile)(x, x_row, x_step, w, inner, from, from_row, out, out_row, rows)

/* The same of 1 .. ROWS rows. */
static TARGET void NAMED(sums_of)(const float *x, int64_t x_row, int64_t x_step, const float *w, int64_t inner,
                                  const float *from, int64_t from_row, float *out, int64_t out_row, int64_t rows)
{
    switch (rows) {
#if ROWS > 4
    case 6: TILE(6); break;
    case 5: TILE(5); break;
#endif
#if ROWS > 3
    case 4: TILE(4); break;
#endif
    case 3: TILE(3); break;
    case 2: TILE(2); break;
    default: TILE(1);
    }
}

/* How many of `left` rows go together, so that all tiles have about as many. */
static inline int64_t NAMED(rows_of)(int64_t left)
{
    const int64_t tiles = (left + ROWS - 1) / ROWS;
    return (left + tiles - 1) / tiles;
}

/* A matrix [4 size, inner] in blocks of LANES columns of all gates, which are its rows; columns behind the last are 0. */
static TARGET void NAMED(pack_gates)(const struct lstm *s, const float *matrix, int64_t inner, const float *bias, float *to,
                                     int64_t number, int64_t parts)
{
    const int64_t n = s->size, blocks = (n + LANES - 1) / LANES, rows = inner + (bias != NULL);
    for (int64_t b = blocks * number / parts; b < blocks * (number + 1) / parts; b++)
        for (int64_t column = 0; column < BLOCK; column++) {
            const int64_t j = b * LANES + column % LANES, row = column / LANES * n + j;
            float *own = to + b * rows * BLOCK + column;
            for (int64_t k = 0; k < inner; k++)
                own[k * BLOCK] = j < n ? matrix[row * inner + k] : 0.0f;
            if (bias)
                own[inner * BLOCK] = j < n ? bias[row] : 0.0f;
        }
}

/* Rows of `columns` numbers in blocks of BLOCK columns. */
static TARGET void NAMED(pack_rows)(const float *matrix, int64_t row, int64_t rows, int64_t columns, float *to,
                                    int64_t number, int64_t parts)
{
    const int64_t blocks = (columns + BLOCK - 1) / BLOCK;
    for (int64_t b = blocks * number / parts; b < blocks * (number + 1) / parts; b++) {
        const int64_t there = least(columns - b * BLOCK, BLOCK);
        for (int64_t k = 0; k < rows; k++) {
            float *own = to + (b * rows + k) * BLOCK;
            memcpy(own, matrix + k * row + b * BLOCK, (size_t)there * sizeof(float));
            memset(own + there, 0, (size_t)(BLOCK - there) * sizeof(float));
        }
    }
}

static TARGET void NAMED(pack)(const struct lstm *s, int64_t number, int64_t parts)
{
    NAMED(pack_gates)(s, s->w_input, s->inputs, s->bias, s->packed_input, number, parts);
    NAMED(pack_gates)(s, s->w_state, s->size, NULL, s->packed_state, number, parts);
}

static TARGET void NAMED(pack_back)(const struct lstm *s, int64_t number, int64_t parts)
{
    NAMED(pack_rows)(s->w_input, s->inputs, GATES * s->size, s->inputs, s->packed_input, number, parts);
    NAMED(pack_rows)(s->w_state, s->size, GATES * s->size, s->size, s->packed_state, number, parts);
}

/* What of the gates of some steps, the first one of which is at `low`, depends on the input alone. */
static TARGET void NAMED(products)(const struct lstm *s, const struct part *p, int64_t low, int64_t steps)
{
    const int64_t inputs = s->inputs, wide = (s->size + LANES - 1) / LANES * BLOCK;
    const int whole = p->row == 0 && p->row_end == s->batch; /* then rows of all steps are in a row */
    const int64_t runs = whole ? 1 : steps, count = whole ? steps * s->batch : p->row_end - p->row;
    for (int64_t b = p->block; b < p->block_end; b++) {
        const float *w = s->packed_input + b * (inputs + 1) * BLOCK;
        for (int64_t run = 0; run < runs; run++) {
            const int64_t first = run * s->batch + p->row;
            for (int64_t row = first, rows; row < first + count; row += rows) {
                rows = NAMED(rows_of)(first + count - row);
                NAMED(sums_of)(s->x + (low * s->batch + row) * inputs, inputs, 1, w, inputs, w + inputs * BLOCK, 0,
                               s->sums + row * wide + b * BLOCK, wide, rows);
            }
        }
    }
}

static TARGET void NAMED(forward)(const struct lstm *s, const struct part *p)
{
    const int64_t n = s->size, at = place(s, p->step), kept_row = KEPT * n, h_row = p->step ? kept_row : n;
    const int64_t some = together(s), begin = p->step / some * some, steps = least(some, s->steps - begin);
    const int64_t low = s->reverse ? s->steps - begin - steps : begin, wide = (n + LANES - 1) / LANES * BLOCK;
    const float *h = p->step ? s->kept + place(s, p->step - 1) * s->batch * kept_row + 5 * n : s->h;
    int64_t c_row;
    const float *c = cell_before(s, p->step, &c_row);
    float *kept = s->kept + at * s->batch * kept_row, *out = s->out + at * s->out_step, sums[ROWS * BLOCK];
    if (p->step == begin)
        NAMED(products)(s, p, low, steps);
    for (int64_t b = p->block; b < p->block_end; b++) {
        const int64_t first = b * LANES;
        const float *of_input = s->sums + (at - low) * s->batch * wide + b * BLOCK;
        for (int64_t row = p->row, rows; row < p->row_end; row += rows) {
            rows = NAMED(rows_of)(p->row_end - row);
            NAMED(sums_of)(h + row * h_row, h_row, 1, s->packed_state + b * n * BLOCK, n, of_input + row * wide, wide, sums,
                           BLOCK, rows);
            for (int64_t r = row; r < row + rows; r++) {
                const float *own = sums + (r - row) * BLOCK, *before = c + r * c_row + first;
                float *to = kept + r * kept_row + first, *o = out + r * s->out_row + first;
                if (first + LANES <= n)
                    forward_row(own, LANES, before, to, n, o, LANES);
                else
                    forward_row(own, LANES, before, to, n, o, n - first);
            }
        }
    }
}

/* The gradients of the gates. */
static TARGET void NAMED(rows_back)(const struct lstm *s, const struct part *p)
{
    const int64_t n = s->size, at = place(s, p->step), first = p->block * BLOCK;
    const int64_t end = least(p->block_end * BLOCK, n);
    int64_t c_row;
    const float *c = cell_before(s, p->step, &c_row), *out = s->out + at * s->out_step;
    for (int64_t r = p->row; r < p->row_end; r++) {
        const int64_t row = at * s->batch + r;
        backward_row(n, s->kept + row * KEPT * n, c + r * c_row, out + r * s->out_row, s->dh + r * n, s->dc + r * n,
                     s->d + row * GATES * n, first, end - first);
    }
}

/* Some blocks of the product of rows with a matrix that pack_rows packed. */
static TARGET void NAMED(product)(const float *x, int64_t rows, int64_t inner, const float *packed, int64_t block,
                                  int64_t block_end, float *out, int64_t columns)
{
    float sums[ROWS * BLOCK];
    for (int64_t row = 0, some; row < rows; row += some) {
        some = NAMED(rows_of)(rows - row);
        for (int64_t b = block; b < block_end; b++) {
            const int64_t there = least(columns - b * BLOCK, BLOCK);
            NAMED(sums_of)(x + row * inner, inner, 1, packed + b * inner * BLOCK, inner, zeros, 0, sums, BLOCK, some);
            for (int64_t r = 0; r < some; r++)
                memcpy(out + (row + r) * columns + b * BLOCK, sums + r * BLOCK, (size_t)there * sizeof(float));
        }
    }
}

/* From those of the gates the gradients of h before the step. */
static TARGET void NAMED(product_back)(const struct lstm *s, const struct part *p)
{
    const int64_t n = s->size, row = place(s, p->step) * s->batch + p->row;
    NAMED(product)(s->d + row * GATES * n, p->row_end - p->row, GATES * n, s->packed_state, p->block, p->block_end,
                   s->dh + p->row * n, n);
}

/* Adds to rows `begin` .. `end` of out [4 size, columns] d' x, of `rows` rows of the gradients of gates, and as many of x.
   room: for [INNER, columns + BLOCK] numbers. */
static TARGET void NAMED(add_outer)(const float *d, int64_t d_row, const float *x, int64_t x_row, int64_t rows,
                                    int64_t columns, float *room, int64_t begin, int64_t end, float *out)
{
    const int64_t blocks = (columns + BLOCK - 1) / BLOCK;
    float sums[ROWS * BLOCK];
    for (int64_t low = 0, inner; low < rows; low += inner) {
        inner = least(rows - low, INNER);
        NAMED(pack_rows)(x + low * x_row, x_row, inner, columns, room, 0, 1);
        for (int64_t first = begin, some; first < end; first += some) {
            some = NAMED(rows_of)(end - first);
            for (int64_t b = 0; b < blocks; b++) {
                const int64_t there = least(columns - b * BLOCK, BLOCK);
                NAMED(sums_of)(d + low * d_row + first, 1, d_row, room + b * inner * BLOCK, inner, zeros, 0, sums, BLOCK, some);
                for (int64_t r = 0; r < some; r++) {
                    float *to = out + (first + r) * columns + b * BLOCK;
                    APART
                    for (int64_t j = 0; j < there; j++)
                        to[j] += sums[r * BLOCK + j];
                }
            }
        }
    }
}

/* The gradients of x in some rows, and those of some rows of weights. */
static TARGET void NAMED(gradients)(const struct lstm *s, int64_t number, int64_t parts)
{
    const int64_t n = s->size, wide = GATES * n, batch = s->batch, inputs = s->inputs, all = s->steps * batch;
    const int64_t row = all * number / parts, row_end = all * (number + 1) / parts, later = s->reverse ? 0 : batch;
    const int64_t begin = wide * number / parts, end = wide * (number + 1) / parts;
    float *room = s->sums + number * INNER * (inputs + n + BLOCK);
    NAMED(product)(s->d + row * wide, row_end - row, wide, s->packed_input, 0, (inputs + BLOCK - 1) / BLOCK,
                   s->dx + row * inputs, inputs);
    memset(s->dw_input + begin * inputs, 0, (size_t)((end - begin) * inputs) * sizeof(float));
    memset(s->dw_state + begin * n, 0, (size_t)((end - begin) * n) * sizeof(float));
    NAMED(add_outer)(s->d, wide, s->x, inputs, all, inputs, room, begin, end, s->dw_input);
    NAMED(add_outer)(s->d + place(s, 0) * batch * wide, wide, s->h, n, batch, n, room, begin, end, s->dw_state);
    NAMED(add_outer)(s->d + later * wide, wide, s->kept + (batch - later) * KEPT * n + 5 * n, KEPT * n, all - batch, n,
                     room, begin, end, s->dw_state);
}

#undef floats
#undef BLOCK
#undef TILE
#undef PLUS_PRODUCT
#undef TARGET
#undef NAMED
#undef LANES
#undef ROWS
