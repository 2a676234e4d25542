/* Products of layers with packed weights: rows of pixels, tap by tap, times blocks of columns.

   Large products of single pixels are Strassen's, in Winograd's form: seven products of halves instead of eight, whose
   sums of weights are packed once (kernels/_convolution.py), and whose sums of results are where the next product of them
   begins. Halves of an odd number of rows share the row in the middle. */

#include "gelu.h"
#include "layers.h"

#include <string.h>

#ifdef POOL

#define BLOCKS 4   /* vectors of columns of a tile at most */
#define ROWS 24    /* rows of one vector: sums, what is multiplied and addresses stay in registers */
#define LOW 12     /* rows at most of other tiles of one vector, and of two */
#define SLICE 6144 /* weights that a tile reads at a time: they stay in the first cache while all tiles go by */
#define ROWS_OF(vectors) ((vectors) == 4 ? 6 : (vectors) == 3 ? 9 : (vectors) == 2 ? LOW : ROWS)

/* How many of `left` vectors of columns make the next block: as few blocks as can be of one or two. */
INLINE int64_t block_of(int64_t left) { return left < 3 ? left : left % 3 == 0 || left == 5 ? 3 : 4; }

/* Where a tile is among the rows and columns of a product, and which numbers of its last vector there are. */
struct place {
    int64_t row, column;
    __mmask16 last;
};

/* What of the taps a tile multiplies: `inner` numbers of each of some rows of taps. Sums of a product in several slices
   lie where its results will be. */
struct slice {
    int64_t taps, inner;
    int first, last;
};

/* Add bias, what was begun and what is added to some sums. */
INLINE WIDEST void plus(vec sums[ROWS][BLOCKS], const struct around *around, const struct place place, const int rows,
                       const int vectors)
{
#define NUMBERS(from)                                                                                                  \
    _mm512_maskz_loadu_ps(v < vectors - 1 ? (__mmask16)0xffff : place.last, (from) + place.column + v * LANES)
    if (around->bias)
        UNROLL for (int v = 0; v < vectors; v++) {
            vec bias = NUMBERS(around->bias);
            UNROLL for (int r = 0; r < rows; r++)
                sums[r][v] += bias;
        }
    if (around->begun)
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < vectors; v++)
                sums[r][v] += NUMBERS(around->begun + (place.row + r) * around->begun_row);
    if (around->added && !around->late)
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < vectors; v++)
                sums[r][v] += NUMBERS(around->added + (place.row + r) * around->added_row);
#undef NUMBERS
}

/* The sums of a tile of one vector of columns, which takes as long as loads do. Rows share addresses by threes, of which
   the compiler does not know that they go in step: it would keep one of each row, in memory. */
INLINE WIDEST void one_column(const float *a, int64_t pitch, int64_t inner, const float *w, vec sums[ROWS][BLOCKS],
                              const int rows)
{
    const float *thirds[ROWS / 3];
    UNROLL for (int i = 0; 3 * i < rows; i++)
        thirds[i] = a + 3 * i * pitch;
    for (int64_t k = 0; k < inner; k++) {
        const vec column = _mm512_loadu_ps(w + k * LANES);
        UNROLL for (int i = 0; 3 * i < rows; i++)
            __asm__("" : "+r"(thirds[i]));
        UNROLL for (int r = 0; r < rows; r++)
            sums[r][0] = _mm512_fmadd_ps(_mm512_set1_ps(thirds[r / 3][r % 3 * pitch]), column, sums[r][0]);
        UNROLL for (int i = 0; 3 * i < rows; i++)
            thirds[i]++;
    }
}

/* Some rows times some vectors of columns, whose weights lie row by row; next: weights that will be needed soon. */
INLINE WIDEST void tile(const struct from *from, const struct slice *slice, const float *pixels, const float *w,
                        const float *next, const struct around *around, float *out, int64_t out_row,
                        const struct place place, const int rows, const int vectors)
{
    vec sums[ROWS][BLOCKS], columns[BLOCKS];
    const int64_t pitch = from->pitch, inner = slice->inner;
#define LAST(v) (v < vectors - 1 ? (__mmask16)0xffff : place.last)
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++)
            sums[r][v] = slice->first ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(LAST(v), out + r * out_row + v * LANES);
    if (slice->first && !around->sums)
        plus(sums, around, place, rows, vectors);
    for (int64_t y = 0; y < slice->taps; y++) {
        const float *a = pixels + y * from->apart;
        if (vectors == 1) {
            one_column(a, pitch, inner, w, sums, rows);
            w += inner * LANES;
            continue;
        }
        for (int64_t k = 0; k < inner; k++, w += vectors * LANES) {
            _mm_prefetch((const char *)next, _MM_HINT_T0);
            next += LANES;
            UNROLL for (int v = 0; v < vectors; v++)
                columns[v] = _mm512_loadu_ps(w + v * LANES);
            UNROLL for (int r = 0; r < rows; r++) {
                vec number = _mm512_set1_ps(a[r * pitch + k]);
                UNROLL for (int v = 0; v < vectors; v++)
                    sums[r][v] = _mm512_fmadd_ps(number, columns[v], sums[r][v]);
            }
        }
    }
    if (slice->last && around->sums) {
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < vectors; v++) {
                float *to = around->sums + (place.row + r) * around->sums_row + place.column + v * LANES;
                _mm512_storeu_ps(to, _mm512_loadu_ps(to) + sums[r][v]);
            }
        plus(sums, around, place, rows, vectors);
    }
    if (slice->last && around->in_registers)
        UNROLL for (int r = 0; r < rows; r++)
            apply_in_registers(around->layer->functions, sums[r], vectors);
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++)
            _mm512_mask_storeu_ps(out + r * out_row + v * LANES, LAST(v), sums[r][v]);
#undef LAST
}

WIDEST void layer_follow(const struct layer *layer, const float *added, int64_t added_row, float *out, int64_t out_row,
                         int64_t rows, int64_t width)
{
    if (out_row == width && (!added || added_row == width)) /* all in a row: more at a time for each function */
        width *= rows, rows = 1, out_row = added_row = width;
    for (int64_t i = begins_in_registers(layer); i <= layer->count; i++) {
        if (i && i == layer->added_at) /* behind a function: what is added to sums was */
            for (int64_t r = 0; r < rows; r++)
                APART
                for (int64_t c = 0; c < width; c++)
                    out[r * out_row + c] += added[r * added_row + c];
        if (i == layer->count)
            break;
        if (layer->functions[i].kind == GELU)
            gelu(out, out_row, rows, width);
        else
            for (int64_t r = 0; r < rows; r++)
                apply(layer->functions + i, out + r * out_row, width);
    }
}

#define OF_ROWS(n)                                                                                                     \
    case n:                                                                                                            \
        tile(from, slice, pixels, w, next, around, out, out_row, place, n <= ROWS_OF(vectors) ? n : 0, vectors);       \
        break;

INLINE WIDEST void some_rows(const struct from *from, const struct slice *slice, const float *pixels, const float *w,
                             const float *next, const struct around *around, float *out, int64_t out_row,
                             const struct place place, int64_t rows, const int vectors)
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
        OF_ROWS(10)
        OF_ROWS(11)
        OF_ROWS(12)
        OF_ROWS(ROWS)
    }
}

/* The rows of the next tile of `left` ones: about equal ones, but for high ones of a vector. */
INLINE int64_t tile_rows(int64_t left, const int vectors)
{
    if (vectors == 1 && left >= ROWS)
        return ROWS;
    return parts_of(left, parts_of(left, vectors == 1 ? LOW : ROWS_OF(vectors)));
}

/* All tiles of a slice of some vectors of columns from `column` on; pixels: the first number that it reads. */
INLINE WIDEST void slice_product(const struct from *from, const struct slice *slice, const float *pixels, int64_t rows,
                                 const float *w, const struct around *around, float *out, int64_t out_row,
                                 int64_t column, int64_t width, const int vectors)
{
    const int64_t depth = slice->taps * slice->inner;
    const float *behind = w + vectors * LANES * depth;
    struct place place = {0, column, lanes(width - (vectors - 1) * LANES)};
    for (int64_t line = 0; line < from->lines; line++) {
        const float *at = pixels + line * from->line;
        for (int64_t t = 0, left = rows, count; left; t++, left -= count, place.row += count, at += count * from->pitch) {
            count = tile_rows(left, vectors);
            const float *next = line == 0 && t < vectors ? behind + t * LANES * depth : behind;
            float *to = out + place.row * out_row + column;
            some_rows(from, slice, at, w, next, around, to, out_row, place, count, vectors);
            const float *added = around->late ? around->added + place.row * around->added_row + column : NULL;
            if (slice->last && around->follows)
                layer_follow(around->layer, added, around->added_row, to, out_row, count, width);
        }
    }
}

WIDEST void layer_product(const struct from *from, int64_t rows, const float *w, int64_t begin, int64_t end,
                          const struct around *around, float *out, int64_t out_row)
{
    const int64_t all = parts_of(end, LANES), skipped = parts_of(begin, LANES);
    w += skipped * LANES * from->inner * from->taps;
    for (int64_t first = skipped, vectors; first < all; first += vectors) {
        vectors = block_of(all - first);
        const int64_t width = smaller(end - first * LANES, vectors * LANES), most = SLICE / (vectors * LANES);
        /* parts of a row of taps, or some rows of taps at a time */
        const int64_t parts = parts_of(from->inner, most), taps = parts > 1 ? 1 : most / from->inner;
        for (int64_t y = 0; y < from->taps; y += taps)
            for (int64_t part = 0; part < parts; part++) {
                const int64_t k = from->inner * part / parts;
                const struct slice slice = {smaller(taps, from->taps - y), from->inner * (part + 1) / parts - k,
                                            !y && !part, y + taps >= from->taps && part == parts - 1};
                const float *pixels = from->pixels + y * from->apart + k;
#define OF_VECTORS(n)                                                                                                  \
    case n:                                                                                                            \
        slice_product(from, &slice, pixels, rows, w, around, out, out_row, first * LANES, width, n);                   \
        break;
                switch (vectors) {
                    OF_VECTORS(1)
                    OF_VECTORS(2)
                    OF_VECTORS(3)
                    OF_VECTORS(4)
                }
#undef OF_VECTORS
                w += vectors * LANES * slice.taps * slice.inner;
            }
    }
}

WIDEST void layer_halved_product(const float *a, int64_t a_row, int64_t rows, const float *w, int64_t inner,
                                 int64_t outputs, const struct around *around, float *out, int64_t out_row,
                                 float *scratch)
{
#define PRODUCT(a, pitch, w, around, out, out_row)                                                                     \
    layer_product(&(struct from){a, 1, 0, pitch, k, 1, 0}, m, w, 0, n, around, out, out_row)
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
    PRODUCT(a, a_row, w, &none, u, n);
    PRODUCT(a + k, a_row, w + part, &first, out, out_row);
    PRODUCT(s2, k, w + 2 * part, &from_u, u, n);
    PRODUCT(s3, k, w + 3 * part, &from_u, u3, n);
    PRODUCT(a + below * a_row + k, a_row, w + 4 * part, &lower, out + below * out_row, out_row);
    /* the other half of the columns */
    if (first.bias)
        first.bias += n, lower.bias += n;
    if (first.added)
        first.added += n, lower.added += n;
    both = lower, both.sums = u, both.sums_row = n;
    PRODUCT(s1, k, w + 5 * part, &both, out + below * out_row + n, out_row);
    PRODUCT(s4, k, w + 6 * part, &first, out + n, out_row);
#undef PRODUCT
}

int64_t layer_column(int64_t outputs, int64_t part, int64_t parts)
{
    const int64_t all = parts_of(outputs, LANES);
    int64_t first = 0;
    while (first < all * part / parts)
        first += block_of(all - first);
    return smaller(first * LANES, outputs);
}

/* A filter, of whose numbers it is said how far channels, taps and outputs are apart, and where they go: by blocks of
   columns, or in one block, which have a row for each channel of each tap. */
struct filter {
    int64_t channels, taps, outputs, channel, tap, output, one_block;
    const float *from;
    float *to;
};

EXPORTED void oprack_filter_pack(const struct filter *f)
{
    const int64_t all = parts_of(f->outputs, LANES);
    float *to = f->to;
    for (int64_t first = 0, vectors; first < all; first += vectors) {
        vectors = f->one_block ? all : block_of(all - first);
        const int64_t width = smaller(f->outputs - first * LANES, vectors * LANES);
        for (int64_t t = 0; t < f->taps; t++)
            for (int64_t c = 0; c < f->channels; c++, to += vectors * LANES) {
                const float *from = f->from + c * f->channel + t * f->tap + first * LANES * f->output;
                for (int64_t j = 0; j < width; j++)
                    to[j] = from[j * f->output];
                memset(to + width, 0, (size_t)(vectors * LANES - width) * sizeof *to);
            }
    }
}

#else

EXPORTED void oprack_filter_pack(const void *filter) { (void)filter; }

#endif
