/* Convolutions, of one group or of a channel each: rows of pixels times weights, tap by tap, then what follows, for some
   rows of results at a time, so that what is read again stays in the caches of a core. Nothing is made for a size. A
   window that reaches over the edges reads a copy of its rows with zeros around them; one of channels, which takes hardly
   longer than the copy of a large image, reads zeros at the edges instead.

   A second layer, of single pixels, may follow the first: what lies between the two then stays in the caches as well. Layers
   in a row go by such steps, for some rows or images at a time (chain.c).

   Numbers are the same for any number of threads: blocks of rows, on whose height products of halves depend, depend on how
   many rows there are alone, but for those that several threads need to share a small image. */

#define _GNU_SOURCE
#include "layers.h"
#include "native.h"
#include "pool.h"

#include <stdint.h>
#include <string.h>

#ifdef POOL

#define NARROW 24        /* columns up to which most tiles of channels would be at an edge */
#define BLOCK 144        /* results of a block of single pixels */
#define WINDOWS 576      /* and of one of windows, whose rows are copied with what is around them */
#define LINES 4          /* rows of a block of one of channels at least: two of them are computed at once */
#define EVEN 4           /* threads that share blocks evenly */
#define CACHED (1 << 17) /* floats of a copy that stay in the second cache of a core beside weights */

/* How the first layer goes through an image: in blocks of at most so many rows, which read so many rows and columns. */
struct plan {
    int64_t blocks, block, down, across;
    int64_t copied, between, room; /* floats of scratch memory: of a copy, of what lies between layers, and in all */
};

struct job {
    const struct convolution *settings;
    struct plan plan;
    void *const *memory;
};

/* Whether results are products of single pixels, one for each. */
INLINE int of_pixels(const struct convolution *s)
{
    return s->taps[0] * s->taps[1] * s->strides[0] * s->strides[1] == 1 && !s->before[0] && !s->before[1];
}

static int64_t halves_room(const struct layer *layer, int64_t rows, int64_t inputs)
{
    return layer->halved ? (rows + 1) * (inputs + layer->outputs / 2) : 0;
}

static void make_plan(const struct convolution *s, struct plan *p)
{
    int64_t reads[2];
    const int64_t sizes[2] = {s->height, s->width}, results[2] = {s->rows, s->columns};
    int padded = 0;
    for (int i = 0; i < 2; i++) {
        reads[i] = (results[i] - 1) * s->strides[i] + s->taps[i];
        padded |= s->before[i] > 0 || reads[i] > sizes[i];
    }
    padded |= s->plane > 0;
    padded &= !s->depthwise || s->columns <= NARROW;
    p->across = reads[1];
    /* rows whose copy fits, and which are no more than a block's */
    int64_t rows = (CACHED / (p->across * s->channels) - s->taps[0]) / s->strides[0] + 1;
    const int64_t pixels = padded && !s->depthwise ? WINDOWS : BLOCK;
    int64_t most = parts_of(pixels, s->columns);
    if (s->depthwise && most < LINES)
        most = LINES;
    rows = smaller(!padded ? s->rows : rows < 1 ? 1 : rows, most);
    p->blocks = parts_of(s->rows, smaller(rows, s->rows));
    if (p->blocks > 1)
        p->blocks = smaller(parts_of(p->blocks, EVEN) * EVEN, s->rows);
    else if (s->images < s->places && (s->depthwise || s->count > 1) && !s->layers[0].halved
             && !s->layers[s->count - 1].halved)
        p->blocks = smaller(parts_of(s->places, s->images), s->rows); /* else the others would have nothing to do */
    p->block = parts_of(s->rows, p->blocks);
    p->down = (p->block - 1) * s->strides[0] + s->taps[0];
    p->copied = padded || s->scaled ? parts_of(p->down * p->across * s->channels, LANES) * LANES : 0;
    const int64_t results_of = p->block * s->columns;
    const struct layer *first = s->layers;
    p->between = s->count > 1 ? results_of * first->outputs : 0;
    int64_t halves = halves_room(first, results_of, s->channels);
    if (s->count > 1 && halves_room(first + 1, results_of, first->outputs) > halves)
        halves = halves_room(first + 1, results_of, first->outputs);
    p->room = parts_of(p->copied + p->between + halves + 1, LANES) * LANES;
}

/* Rows first ... of an image, channels last, with zeros where it has none, and columns likewise. */
static void copy_rows(const struct convolution *s, const struct plan *p, const float *image, int64_t first, int64_t rows,
                      float *to)
{
    const int64_t line = p->across * s->channels, start = s->before[1] * s->channels;
    const int64_t width = smaller(s->width, p->across - s->before[1]) * s->channels;
    for (int64_t y = first; y < first + rows; y++, to += line) {
        if (y < 0 || y >= s->height || width <= 0) {
            memset(to, 0, (size_t)line * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)start * sizeof *to);
        if (s->plane)
            for (int64_t c = 0; c < s->channels; c++) {
                const float *from = image + c * s->plane + y * s->width;
                for (int64_t x = c; x < width; x += s->channels)
                    to[start + x] = *from++;
            }
        else
            memcpy(to + start, image + y * s->width * s->channels, (size_t)width * sizeof *to);
        memset(to + start + width, 0, (size_t)(line - start - width) * sizeof *to);
    }
}

/* Pixels times a scale of their channels. */
static WIDEST void scale_pixels(const float *from, const float *scale, int64_t pixels, int64_t channels, float *to)
{
    for (int64_t i = 0; i < pixels; i++, from += channels, to += channels)
        APART
        for (int64_t c = 0; c < channels; c++)
            to[c] = from[c] * scale[c];
}

/* The first layer's results of some rows. scale: of the image's channels, or NULL. */
static WIDEST void first_layer(const struct convolution *s, const struct plan *p, const float *image,
                              const float *scale, int64_t begin, int64_t rows, const float *w, int64_t columns,
                              int64_t last_column, const struct around *around, float *out, float *scratch, float *rest)
{
    const struct layer *layer = s->layers;
    const int64_t top = begin * s->strides[0] - s->before[0];
    int64_t line = s->width * s->channels;
    const float *start = image + top * line;
    if (scale)
        scale_pixels(start, scale, rows * s->columns, s->channels, scratch), start = scratch;
    else if (p->copied) {
        copy_rows(s, p, image, top, (rows - 1) * s->strides[0] + s->taps[0], scratch);
        line = p->across * s->channels, start = scratch;
    }
    if (s->depthwise) {
        struct convolution copy = *s;
        if (p->copied)
            copy.height = p->down, copy.width = p->across, copy.before[0] = copy.before[1] = 0;
        layer_of_channels(&copy, p->copied ? scratch : image, p->copied ? 0 : begin, rows, w, around, out);
        return;
    }
    if (layer->halved) {
        layer_halved_product(start, s->channels, rows * s->columns, w, s->channels, layer->outputs, around, out,
                             layer->outputs, rest);
        return;
    }
    struct from from = {start, rows, s->strides[0] * line, s->strides[1] * s->channels, s->taps[1] * s->channels,
                        s->taps[0], line};
    int64_t count = s->columns;
    if (of_pixels(s)) /* as if they were all in a row */
        from.lines = 1, count *= rows;
    layer_product(&from, count, w, columns, last_column, around, out, layer->outputs);
}

static WIDEST void share(void *data)
{
    const struct job *job = data;
    const struct convolution *s = job->settings;
    const struct plan *p = &job->plan;
    const int64_t shares = pool_count(), own = pool_number(), blocks = s->images * p->blocks;
    const struct layer *first = s->layers, *last = first + s->count - 1;
    /* memory: images; weights of each layer; their scale; biases that are there; what is added; scratch memory; results */
    void *const *memory = job->memory + 1 + s->count;
    const float *scale = s->scaled ? *memory++ : NULL;
    struct around arounds[LAYERS] = {{0}};
    for (int64_t i = 0; i < s->count; i++) {
        arounds[i].layer = first + i;
        arounds[i].late = first[i].added_at > 0;
        arounds[i].in_registers = begins_in_registers(first + i);
        arounds[i].follows = first[i].count > arounds[i].in_registers || arounds[i].late;
        if (first[i].biased)
            arounds[i].bias = *memory++;
    }
    const float *added = last->added_at < 0 ? NULL : *memory++;
    float *scratch = (float *)memory[0] + own * p->room, *results = memory[1];
    float *between = scratch + p->copied, *rest = between + p->between;
    /* where blocks are fewer than threads, these take parts of the columns */
    const int64_t parts = s->count > 1 || first->halved || s->depthwise || blocks >= shares ? 1 : parts_of(shares, blocks);
    const int64_t units = blocks * parts;
    for (int64_t u = units * own / shares; u < units * (own + 1) / shares; u++) {
        const int64_t image = u / parts / p->blocks, b = u / parts % p->blocks;
        const int64_t begin = s->rows * b / p->blocks, rows = s->rows * (b + 1) / p->blocks - begin;
        const int64_t pixels = rows * s->columns, at = (image * s->rows + begin) * s->columns * last->outputs;
        const int64_t size = s->plane ? s->plane : s->height * s->width;
        const float *source = (const float *)job->memory[0] + image * size * s->channels;
        struct around *end = arounds + s->count - 1;
        if (added)
            end->added = added + at, end->added_row = last->outputs;
        first_layer(s, p, source, scale ? scale + image * s->channels : NULL, begin, rows, job->memory[1],
                    layer_column(first->outputs, u % parts, parts), layer_column(first->outputs, u % parts + 1, parts),
                    arounds, s->count > 1 ? between : results + at, scratch, rest);
        if (s->count < 2)
            continue;
        if (last->halved)
            layer_halved_product(between, first->outputs, pixels, job->memory[2], first->outputs, last->outputs, end,
                                 results + at, last->outputs, rest);
        else
            layer_product(&(struct from){between, 1, 0, first->outputs, first->outputs, 1, 0}, pixels, job->memory[2], 0,
                          last->outputs, end, results + at, last->outputs);
    }
}

int64_t convolution_room(const struct convolution *s)
{
    struct plan plan;
    make_plan(s, &plan);
    return plan.room * s->places;
}

void convolution_run(const struct convolution *s, void *const *memory, int64_t threads)
{
    struct job job = {.settings = s, .memory = memory};
    make_plan(s, &job.plan);
    pool_run(share, &job, smaller(threads, s->places));
}

#endif
