/* Layers with a group for each channel: channels are columns of vectors, and a tile is some pixels side by side, which read
   zeros where there is no image. */

#include "layers.h"

#ifdef POOL

#define PIXELS 8 /* of a tile at most */
#define FIRST_CACHE 6144 /* floats that stay in it beside weights and results */
#define MANY 5   /* from which on tiles of windows of three, five and seven taps have code of their own */

/* What a tile of channels reads and writes. column: of the image, where the first pixel's first tap is; rows of taps that
   see pixels. */
struct channels {
    const struct convolution *settings;
    const struct layer *layer;
    const float *image, *w, *bias, *added;
    float *out;
    int64_t column, first_row, last_row;
    int in_registers, follows;
};

static const float nothing[LANES] = {0};

INLINE WIDEST void begin_sums(const struct channels *t, int64_t c, __mmask16 there, const int whole, vec *sums,
                              const int pixels)
{
    const vec bias = t->bias ? numbers(t->bias + c, there, whole) : _mm512_setzero_ps();
    UNROLL for (int i = 0; i < pixels; i++)
        sums[i] = bias;
}

/* line: how many numbers the results lie behind the tile's first. */
INLINE WIDEST void end_sums(const struct channels *t, int64_t line, int64_t c, __mmask16 there, const int whole, vec *sums,
                            const int pixels)
{
    const int64_t channels = t->settings->channels;
    if (t->layer->added_at == 0)
        UNROLL for (int i = 0; i < pixels; i++)
            sums[i] += numbers(t->added + line + i * channels + c, there, whole);
    if (t->in_registers)
        apply_in_registers(t->layer->functions, sums, pixels);
    UNROLL for (int i = 0; i < pixels; i++)
        put_numbers(t->out + line + i * channels + c, sums[i], there, whole);
}

/* Some pixels side by side, of some channels from `c` on, all of which there are where `whole`. */
INLINE WIDEST void channel_tile(const struct channels *t, int64_t c, __mmask16 there, const int whole, const int edges,
                                const int pixels)
{
    const struct convolution *s = t->settings;
    const int64_t channels = s->channels, stride = s->strides[1], step = stride * channels, width = s->width;
    const int64_t padded = parts_of(channels, LANES) * LANES;
    vec sums[PIXELS];
    begin_sums(t, c, there, whole, sums, pixels);
    const float *w = t->w + t->first_row * s->taps[1] * padded + c;
    for (int64_t y = t->first_row; y < t->last_row; y++) {
        const float *from = t->image + (y * width + t->column) * channels + c;
        int64_t column = t->column;
        for (int64_t x = 0; x < s->taps[1]; x++, from += channels, w += padded, column++) {
            const vec weights = _mm512_loadu_ps(w);
            UNROLL for (int i = 0; i < pixels; i++) {
                const float *at = from + i * step;
                if (edges)
                    at = (uint64_t)(column + i * stride) < (uint64_t)width ? at : nothing;
                sums[i] = _mm512_fmadd_ps(numbers(at, there, whole), weights, sums[i]);
            }
        }
    }
    end_sums(t, 0, c, there, whole, sums, pixels);
}

/* The same of channels from `begin` to `end`, for `taps` in a row, which move by `stride`: a pixel is read once for all
   taps that see it. */
INLINE WIDEST void row_of_taps(const struct channels *t, int64_t begin, int64_t end, __mmask16 there, const int whole,
                               const int taps, const int stride, const int edges, const int pixels)
{
    const int64_t channels = t->settings->channels, padded = parts_of(channels, LANES) * LANES;
    const int64_t width = t->settings->width;
    for (int64_t c = begin; c < end; c += LANES) {
        vec sums[PIXELS], weights[7], seen[PIXELS * 2 + 3];
        begin_sums(t, c, there, whole, sums, pixels);
        const float *w = t->w + t->first_row * taps * padded + c;
        for (int64_t y = t->first_row; y < t->last_row; y++) {
            const float *from = t->image + (y * width + t->column) * channels + c;
            UNROLL for (int x = 0; x < taps; x++, w += padded)
                weights[x] = _mm512_loadu_ps(w);
            UNROLL for (int j = 0; j < (pixels - 1) * stride + taps; j++, from += channels)
                seen[j] = numbers(!edges || (uint64_t)(t->column + j) < (uint64_t)width ? from : nothing, there, whole);
            UNROLL for (int x = 0; x < taps; x++)
                UNROLL for (int i = 0; i < pixels; i++)
                    sums[i] = _mm512_fmadd_ps(seen[i * stride + x], weights[x], sums[i]);
        }
        end_sums(t, 0, c, there, whole, sums, pixels);
    }
}

/* The same of two lines of results at once, for windows of 3 x 3 that move by one and see rows of the image alone. */
INLINE WIDEST void two_lines(const struct channels *t, int64_t begin, int64_t end, __mmask16 there, const int whole,
                             const int edges, const int pixels)
{
    const struct convolution *s = t->settings;
    const int64_t channels = s->channels, padded = parts_of(channels, LANES) * LANES;
    for (int64_t c = begin; c < end; c += LANES) {
        vec sums[2][PIXELS], weights[3][3];
        UNROLL for (int l = 0; l < 2; l++)
            begin_sums(t, c, there, whole, sums[l], pixels);
        UNROLL for (int k = 0; k < 9; k++)
            weights[k / 3][k % 3] = _mm512_loadu_ps(t->w + k * padded + c);
        UNROLL for (int y = 0; y < 4; y++) {
            const float *from = t->image + (y * s->width + t->column) * channels + c;
            UNROLL for (int j = 0; j < pixels + 2; j++, from += channels) {
                const int seen = !edges || (uint64_t)(t->column + j) < (uint64_t)s->width;
                const vec pixel = numbers(seen ? from : nothing, there, whole);
                UNROLL for (int l = 0; l < 2; l++)
                    UNROLL for (int x = 0; x < 3; x++)
                        if (y >= l && y - l < 3 && j >= x && j - x < pixels)
                            sums[l][j - x] = _mm512_fmadd_ps(pixel, weights[y - l][x], sums[l][j - x]);
            }
        }
        UNROLL for (int l = 0; l < 2; l++)
            end_sums(t, l * s->columns * channels, c, there, whole, sums[l], pixels);
    }
}

/* Some pixels side by side, of channels from `begin` to `end`. */
INLINE WIDEST void channel_tiles(const struct channels *t, int64_t begin, int64_t end, __mmask16 there, const int whole,
                                 const int edges, const int pixels, const int lines)
{
    const struct convolution *s = t->settings;
    const int64_t stride = s->strides[1], taps = pixels < MANY ? 0 : s->taps[1];
    const int many = pixels < MANY ? MANY : pixels; /* so that there is no code for few pixels */
    if (lines == 2)
        two_lines(t, begin, end, there, whole, edges, many);
    else if (taps == 3 && stride == 1)
        row_of_taps(t, begin, end, there, whole, 3, 1, edges, many);
    else if (taps == 3 && stride == 2)
        row_of_taps(t, begin, end, there, whole, 3, 2, edges, many);
    else if (taps == 5 && stride == 1)
        row_of_taps(t, begin, end, there, whole, 5, 1, edges, many);
    else if (taps == 5 && stride == 2)
        row_of_taps(t, begin, end, there, whole, 5, 2, edges, many);
    else if (taps == 7 && stride == 1)
        row_of_taps(t, begin, end, there, whole, 7, 1, edges, many);
    else
        for (int64_t c = begin; c < end; c += LANES)
            channel_tile(t, c, there, whole, edges, pixels);
}

INLINE WIDEST void tile_of_pixels(const struct channels *t, int64_t begin, int64_t end, const int edges, const int pixels,
                                  const int lines)
{
    const int64_t channels = t->settings->channels, whole = begin + (end - begin) / LANES * LANES;
    channel_tiles(t, begin, whole, 0xffff, 1, edges, pixels, lines);
    if (whole < end)
        channel_tiles(t, whole, end, lanes(end - whole), 0, 1, pixels, lines); /* less code than one for each */
    for (int l = 0; l < lines && t->follows; l++) {
        const int64_t line = l * t->settings->columns * channels + begin;
        layer_follow(t->layer, t->added ? t->added + line : NULL, channels, t->out + line, channels, pixels, end - begin);
    }
}

#define OF_PIXELS(n)                                                                                                   \
    case n:                                                                                                            \
        if (lines == 2 && edges)                                                                                       \
            tile_of_pixels(&t, c, end, 1, n, 2);                                                                       \
        else if (lines == 2)                                                                                           \
            tile_of_pixels(&t, c, end, 0, n, 2);                                                                       \
        else if (edges)                                                                                                \
            tile_of_pixels(&t, c, end, 1, n, 1);                                                                       \
        else                                                                                                           \
            tile_of_pixels(&t, c, end, 0, n, 1);                                                                       \
        break;

/* Some rows of the results, of channels from `c` to `end`. */
static WIDEST void some_channels(const struct convolution *s, const float *image, int64_t begin, int64_t rows, const float *w,
                                 const struct around *around, float *out, int64_t c, int64_t end, int pairs)
{
    struct channels t = {.settings = s, .layer = around->layer, .w = w, .bias = around->bias, .added = around->added,
                         .out = out, .in_registers = around->in_registers, .follows = around->follows};
    const int64_t stride = s->strides[1], tiles = parts_of(s->columns, PIXELS);
    for (int64_t r = begin, lines; r < begin + rows; r += lines) {
        const int64_t y = r * s->strides[0] - s->before[0];
        t.first_row = y < 0 ? smaller(-y, s->taps[0]) : 0;
        t.last_row = y < s->height ? smaller(s->height - y, s->taps[0]) : 0;
        t.image = image + y * s->width * s->channels;
        lines = pairs && r + 1 < begin + rows && y >= 0 && y + 4 <= s->height ? 2 : 1;
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t column = s->columns * i / tiles, some = s->columns * (i + 1) / tiles - column;
            t.column = column * stride - s->before[1];
            const int edges = t.column < 0 || t.column + (some - 1) * stride + s->taps[1] > s->width;
            switch (some) {
                OF_PIXELS(1)
                OF_PIXELS(2)
                OF_PIXELS(3)
                OF_PIXELS(4)
                OF_PIXELS(5)
                OF_PIXELS(6)
                OF_PIXELS(7)
                OF_PIXELS(8)
            }
            t.out += some * s->channels;
            if (t.added)
                t.added += some * s->channels;
        }
        t.out += (lines - 1) * s->columns * s->channels;
        if (t.added)
            t.added += (lines - 1) * s->columns * s->channels;
    }
}

WIDEST void layer_of_channels(const struct convolution *s, const float *image, int64_t begin, int64_t rows, const float *w,
                              const struct around *around, float *out)
{
    const int pairs = s->columns >= MANY && s->taps[0] == 3 && s->taps[1] == 3 && s->strides[0] == 1 && s->strides[1] == 1;
    /* what a line reads of some channels stays in the first cache until the next one has read it */
    int64_t vectors = FIRST_CACHE / ((s->taps[0] + pairs) * s->width * LANES);
    vectors = vectors < 2 ? 2 : vectors;
    for (int64_t c = 0, end; c < s->channels; c = end) {
        end = smaller(c + vectors * LANES, s->channels);
        some_channels(s, image, begin, rows, w, around, out, c, end, pairs);
    }
}

#endif
