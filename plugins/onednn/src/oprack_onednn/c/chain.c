/* Convolutions one after the other, for images of any size: by steps of one or two layers (convolution.c), and for some
   rows or images at a time, so that what lies between stays in the caches. */

#define _GNU_SOURCE
#include "layers.h"
#include "native.h"
#include "pool.h"

#include <stdint.h>

#ifdef POOL

#define CACHE (5 << 19) /* bytes of the largest result in between that each thread computes at a time */
#define OVERLAP 1.15    /* rows that neighbouring parts both need may make it this much longer */
#define ENOUGH_PIXELS 96      /* of an image, from which on a second layer may read all its weights for each of them, */
#define FEW_WEIGHTS (1 << 18) /* or with no more than so many */
#define MOST 16               /* layers */

/* The fields are those of kernels/_convolution.py, in its order. after: zeros below and to the right. */
struct link {
    struct layer layer;
    int64_t taps[2], strides[2], before[2], after[2], depthwise;
};

struct chain {
    int64_t images, height, width, channels, scaled, planar, places, count;
    struct link links[];
};

/* Rows and columns of what each layer reads, and of the last one's results. */
struct sizes {
    int64_t of[MOST + 1][2];
};

/* Images first ... of rows begin ... end - 1 of the result: several whole images, or rows of one. */
struct part {
    int64_t first, images, begin, end;
};

static int is_pixel(const struct link *l)
{
    return !l->depthwise && l->taps[0] * l->taps[1] * l->strides[0] * l->strides[1] == 1
           && !(l->before[0] | l->before[1] | l->after[0] | l->after[1]);
}

static int64_t channels_of(const struct chain *c, int64_t i) { return i ? c->links[i - 1].layer.outputs : c->channels; }

static void find_sizes(const struct chain *c, struct sizes *s)
{
    s->of[0][0] = c->height, s->of[0][1] = c->width;
    for (int64_t i = 0; i < c->count; i++)
        for (int k = 0; k < 2; k++) {
            const struct link *l = c->links + i;
            s->of[i + 1][k] = (s->of[i][k] + l->before[k] + l->after[k] - l->taps[k]) / l->strides[k] + 1;
        }
}

/* The number behind the last layer of the step that begins with layer i. */
static int64_t step_end(const struct chain *c, const struct sizes *s, int64_t i)
{
    const struct link *next = c->links + i + 1;
    if (i + 1 == c->count || !is_pixel(next))
        return i + 1;
    const int64_t weights = c->links[i].layer.outputs * parts_of(next->layer.outputs, LANES) * LANES;
    return i + (s->of[i + 2][0] * s->of[i + 2][1] >= ENOUGH_PIXELS || weights <= FEW_WEIGHTS ? 2 : 1);
}

/* Numbers that are computed for `rows` rows somewhere in the middle of an image. */
static double needed(const struct chain *c, const struct sizes *s, int64_t rows)
{
    double total = 0;
    for (int64_t i = c->count - 1; i >= 0; i--) {
        const struct link *l = c->links + i;
        total += (double)rows * (double)(s->of[i + 1][1] * l->layer.outputs);
        rows = (rows - 1) * l->strides[0] + l->taps[0];
    }
    return total;
}

/* The size of parts: whole images, or else rows of one. */
static void find_parts(const struct chain *c, const struct sizes *s, int64_t *images, int64_t *rows)
{
    const int64_t height = s->of[c->count][0], cache = CACHE * c->places;
    int64_t largest = 1;
    *images = c->images, *rows = height;
    if (step_end(c, s, 0) == c->count)
        return; /* one step, which takes some rows at a time itself */
    for (int64_t i = 1; i < c->count; i++) {
        const int64_t size = (int64_t)sizeof(float) * s->of[i][0] * s->of[i][1] * channels_of(c, i);
        largest = size > largest ? size : largest;
    }
    if (largest <= cache) {
        *images = smaller(cache / largest, c->images);
        return;
    }
    *images = 1;
    *rows = height * cache / largest > 1 ? height * cache / largest : 1;
    const double all = needed(c, s, height);
    while (*rows < height && needed(c, s, *rows) * (double)height > OVERLAP * (double)*rows * all)
        ++*rows;
    *rows = parts_of(height, parts_of(height, *rows)); /* about equal parts */
}

/* Which rows each layer of a part reads, and how many zeros are above them. */
struct rows {
    int64_t first[MOST + 1], end[MOST + 1], above[MOST];
};

static void find_rows(const struct chain *c, const struct sizes *s, const struct part *p, struct rows *r)
{
    const int whole = p->end - p->begin == s->of[c->count][0];
    r->first[c->count] = p->begin, r->end[c->count] = p->end;
    for (int64_t i = c->count - 1; i >= 0; i--) {
        const struct link *l = c->links + i;
        const int64_t first = r->first[i + 1] * l->strides[0] - l->before[0];
        const int64_t end = (r->end[i + 1] - 1) * l->strides[0] - l->before[0] + l->taps[0];
        /* of whole images with the rows that nothing needs: several of them lie behind each other */
        r->first[i] = whole || first < 0 ? 0 : first;
        r->end[i] = whole ? s->of[i][0] : smaller(end, s->of[i][0]);
        r->above[i] = whole ? l->before[0] : first < 0 ? -first : 0;
    }
}

/* The step of layers i ... end - 1 of a part. */
static struct convolution step_of(const struct chain *c, const struct sizes *s, const struct part *p,
                                  const struct rows *r, int64_t i, int64_t end)
{
    const struct link *l = c->links + i;
    struct convolution v = {.images = p->images, .height = r->end[i] - r->first[i], .width = s->of[i][1],
                            .channels = channels_of(c, i), .rows = r->end[i + 1] - r->first[i + 1],
                            .columns = s->of[i + 1][1], .depthwise = l->depthwise, .scaled = c->scaled && !i,
                            .plane = c->planar && !i ? c->height * c->width : 0,
                            .places = c->places, .count = end - i};
    for (int k = 0; k < 2; k++)
        v.taps[k] = l->taps[k], v.strides[k] = l->strides[k];
    v.before[0] = r->above[i], v.before[1] = l->before[1];
    for (int64_t k = i; k < end; k++)
        v.layers[k - i] = c->links[k].layer;
    if (is_pixel(l)) { /* rows of one image, or of each */
        const int64_t images = v.scaled ? v.images : 1;
        v.height = v.rows = v.images * v.rows * v.columns / images;
        v.width = v.columns = 1, v.images = images;
    }
    return v;
}

/* Floats of scratch memory: of two pieces between steps, in turns, and of what steps want for themselves. */
struct room {
    int64_t between[2], own;
};

static void find_room(const struct chain *c, const struct sizes *s, int64_t images, int64_t rows, struct room *m)
{
    *m = (struct room){{0, 0}, 0};
    for (int64_t begin = 0; begin < s->of[c->count][0]; begin += rows) {
        const struct part p = {0, images, begin, smaller(begin + rows, s->of[c->count][0])};
        struct rows r;
        find_rows(c, s, &p, &r);
        for (int64_t i = 0, end, turn = 0; i < c->count; i = end, turn++) {
            end = step_end(c, s, i);
            const struct convolution v = step_of(c, s, &p, &r, i, end);
            const int64_t own = convolution_room(&v), pixels = (r.end[end] - r.first[end]) * s->of[end][1];
            const int64_t results = parts_of(images * pixels * channels_of(c, end), LANES) * LANES;
            m->own = own > m->own ? own : m->own;
            if (end < c->count && results > m->between[turn % 2])
                m->between[turn % 2] = results;
        }
    }
}

/* Floats of scratch memory that all threads need, and how many products are added up. */
EXPORTED int64_t oprack_convolution_room(const void *settings, int64_t *products)
{
    const struct chain *c = settings;
    struct sizes s;
    struct room m;
    int64_t images, rows;
    find_sizes(c, &s);
    find_parts(c, &s, &images, &rows);
    find_room(c, &s, images, rows, &m);
    *products = 0;
    for (int64_t i = 0; i < c->count; i++) {
        const struct link *l = c->links + i;
        const int64_t inner = l->taps[0] * l->taps[1] * (l->depthwise ? 1 : channels_of(c, i));
        *products += c->images * s.of[i + 1][0] * s.of[i + 1][1] * l->layer.outputs * inner;
    }
    return m.between[0] + m.between[1] + m.own;
}

/* memory: images; weights of each layer; the scale; biases that are there; what is added to the last layer's results;
   results; scratch memory. */
EXPORTED int oprack_convolution(const void *settings, void *const *memory, int64_t threads)
{
    const struct chain *c = settings;
    void *const *weights = memory + 1, *const *more = weights + c->count;
    struct sizes s;
    struct part p;
    struct room m;
    int64_t images, rows;
    find_sizes(c, &s);
    find_parts(c, &s, &images, &rows);
    find_room(c, &s, images, rows, &m);
    void *scale = c->scaled ? *more++ : NULL, *const *biases = more;
    for (int64_t i = 0; i < c->count; i++)
        more += c->links[i].layer.biased;
    const int64_t height = s.of[c->count][0], pixel = channels_of(c, c->count), line = s.of[c->count][1] * pixel;
    float *added = c->links[c->count - 1].layer.added_at < 0 ? NULL : *more++;
    float *results = more[0], *scratch = more[1];
    for (p.first = 0; p.first < c->images; p.first += images)
        for (p.begin = 0; p.begin < height; p.begin += rows) {
            struct rows r;
            void *const *bias = biases;
            const int64_t at = (p.first * height + p.begin) * line;
            p.images = smaller(images, c->images - p.first);
            p.end = smaller(p.begin + rows, height);
            find_rows(c, &s, &p, &r);
            const int64_t line_of = c->planar ? c->width : c->width * c->channels;
            float *source = (float *)memory[0] + p.first * c->height * c->width * c->channels + r.first[0] * line_of;
            for (int64_t i = 0, end, turn = 0; i < c->count; i = end, turn++) {
                end = step_end(c, &s, i);
                float *target = end == c->count ? results + at : scratch + turn % 2 * m.between[0];
                const struct convolution v = step_of(c, &s, &p, &r, i, end);
                void *given[2 * LAYERS + 5], **next = given;
                *next++ = source;
                for (int64_t k = i; k < end; k++)
                    *next++ = weights[k];
                if (v.scaled)
                    *next++ = (float *)scale + p.first * c->channels;
                for (int64_t k = i; k < end; k++)
                    if (c->links[k].layer.biased)
                        *next++ = *bias++;
                if (end == c->count && added)
                    *next++ = added + at;
                *next++ = scratch + m.between[0] + m.between[1];
                *next++ = target;
                convolution_run(&v, given, threads);
                source = target;
            }
        }
    return 0;
}

#else

UNSERVED(oprack_convolution)

EXPORTED int64_t oprack_convolution_room(const void *settings, int64_t *products)
{
    (void)settings, (void)products;
    return 0;
}

#endif
