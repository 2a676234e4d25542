/* The part of a convolution that one of its maps adds, whose pixels were repeated along H and W, computed at the map's
   own resolution: all products of a row of pixels by oneDNN's dnnl_sgemm, for which nothing is made for a shape, and
   then, for each place of the result, the sum of those that belong there. kernels/_upsampled_conv2d.py says which
   products there are, and in which order. Threads take shares of the rows. */

#include "native.h"
#include "pool.h"

#include <stdint.h>
#include <string.h>

#define LANES 8
#define SHARED (1 << 18) /* multiplications from which on a second thread is worth its call */

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int (*product_function)(char turned_a, char turned_b, int64_t rows, int64_t columns, int64_t inner, float alpha,
                                const float *a, int64_t a_row, const float *b, int64_t b_row, float beta, float *c,
                                int64_t c_row);

/* The fields are those of kernels/_upsampled_conv2d.py, in its order. */
struct upsampled {
    int64_t images, height, width, channels; /* of the map */
    int64_t factor, window, outputs;
    int64_t products, row; /* of a pixel; and numbers from one's weights to those of the next */
    int64_t group;         /* rows of pixels that are multiplied at once */
    int64_t adds, biased;
    product_function product;
};

struct job {
    const struct upsampled *settings;
    const float *images, *weights, *bias;
    float *scratch, *results;
};

/* The products that the results of a row add up, of one row of pixels or of two: where they begin, and among the
   products of a pixel those of kernels of two taps along W, by tap, and those of one. */
struct sources {
    const float *rows[2];
    int64_t pairs[2][2], alone[2];
    int count;
};

/* to = its value, where it is added to, + bias + what the sources have there. */
INLINE void put(const struct upsampled *u, float *to, const float *bias, const float *const *from, int count)
{
    int64_t k = 0;
    for (; k + LANES <= u->outputs; k += LANES) {
        vec sum = *(const vec *)(from[0] + k);
        for (int i = 1; i < count; i++)
            sum += *(const vec *)(from[i] + k);
        if (bias)
            sum += *(const vec *)(bias + k);
        if (u->adds)
            sum += *(const vec *)(to + k);
        *(vec *)(to + k) = sum;
    }
    for (; k < u->outputs; k++) {
        float sum = from[0][k];
        for (int i = 1; i < count; i++)
            sum += from[i][k];
        if (bias)
            sum += bias[k];
        to[k] = u->adds ? sum + to[k] : sum;
    }
}

/* The places `first` .. `behind` - 1 of each pixel of a row, which see that pixel alone. */
INLINE void put_alone(const struct upsampled *u, const struct sources *s, const float *bias, float *to, int64_t first,
                      int64_t behind)
{
    for (int64_t x = 0; x < u->width; x++) {
        const float *from[2];
        for (int i = 0; i < s->count; i++)
            from[i] = s->rows[i] + x * u->products + s->alone[i];
        for (int64_t place = x * u->factor + first; place < x * u->factor + behind; place++)
            if (s->count == 1)
                put(u, to + place * u->outputs, bias, from, 1);
            else
                put(u, to + place * u->outputs, bias, from, 2);
    }
}

/* The last place of each pixel and the first one of the next, which see both. */
INLINE void put_pairs(const struct upsampled *u, const struct sources *s, const float *bias, float *to)
{
    for (int64_t x = 0; x <= u->width; x++)
        for (int64_t result = x == 0; result < 2 - (x == u->width); result++) {
            const float *from[4];
            int count = 0;
            for (int i = 0; i < s->count; i++)
                for (int64_t tap = x == 0; tap < 2 - (x == u->width); tap++)
                    from[count++] = s->rows[i] + (x - 1 + tap) * u->products + s->pairs[i][tap] + result * u->outputs;
            float *place = to + (x * u->factor - 1 + result) * u->outputs;
            if (count == 4)
                put(u, place, bias, from, 4);
            else if (count == 2)
                put(u, place, bias, from, 2);
            else
                put(u, place, bias, from, 1);
        }
}

/* A row of results of a window of 3. */
INLINE void put_row(const struct upsampled *u, const struct sources *s, const float *bias, float *to)
{
    put_pairs(u, s, bias, to);
    put_alone(u, s, bias, to, 1, u->factor - 1);
}

/* The rows of results between the middle of row y - 1 of the pixels and that of row y: `before` and `here` are their
   products, NULL of those outside of the map. */
INLINE void put_rows(const struct upsampled *u, int64_t y, const float *before, const float *here, const float *bias,
                     float *image)
{
    const int64_t k = u->outputs, line = u->width * u->factor * k;
    for (int64_t result = !before; result < 2 - !here; result++) {
        struct sources s = {.count = 0};
        for (int64_t tap = !before; tap < 2 - !here; tap++) {
            s.rows[s.count] = tap ? here : before;
            for (int64_t wide = 0; wide < 2; wide++)
                s.pairs[s.count][wide] = (4 * (2 * tap + wide) + 2 * result) * k;
            s.alone[s.count++] = (16 + 2 * tap + result) * k;
        }
        put_row(u, &s, bias, image + (y * u->factor - 1 + result) * line);
    }
    if (here) {
        struct sources s = {.rows = {here}, .pairs = {{20 * k, 22 * k}}, .alone = {24 * k}, .count = 1};
        for (int64_t row = y * u->factor + 1; row < (y + 1) * u->factor - 1; row++)
            put_row(u, &s, bias, image + row * line);
    }
}

INLINE void repeat_row(const struct upsampled *u, int64_t y, const float *here, const float *bias, float *image)
{
    struct sources s = {.rows = {here}, .count = 1};
    for (int64_t row = y * u->factor; row < (y + 1) * u->factor; row++)
        put_alone(u, &s, bias, image + row * u->width * u->factor * u->outputs, 0, u->factor);
}

static void multiply(const struct job *job, const float *pixels, int64_t count, float *products)
{
    const struct upsampled *u = job->settings;
    u->product('N', 'T', count, u->products, u->channels, 1.0f, pixels, u->channels, job->weights, u->row, 0.0f, products,
               u->products);
}

/* The share of the calling thread. */
INLINE void work(const struct job *job)
{
    const struct upsampled *u = job->settings;
    const int64_t pair = u->window > 1, rows = u->height + pair, total = u->images * rows;
    const int64_t number = pool_number(), count = pool_count(), line = u->width * u->products;
    float *before = job->scratch + number * (u->group + 1) * line, *products = before + line;
    const int64_t begin = total * number / count, end = total * (number + 1) / count;
    for (int64_t i = begin, last = 0, some; i < end; i += some) {
        const int64_t image = i / rows, y = i % rows;
        const float *pixels = job->images + (image * u->height + y) * u->width * u->channels;
        float *results = job->results + image * u->height * u->width * u->factor * u->factor * u->outputs;
        some = end - i < u->group ? end - i : u->group;
        some = some < rows - y ? some : rows - y;
        const int64_t here = some < u->height - y ? some : u->height - y;
        if (pair && y && i == begin)
            multiply(job, pixels - u->width * u->channels, u->width, before);
        else if (pair && y)
            memcpy(before, products + (last - 1) * line, (size_t)line * sizeof(float));
        if (here)
            multiply(job, pixels, here * u->width, products);
        for (int64_t j = 0; j < some; j++) {
            const float *row = products + j * line;
            if (pair)
                put_rows(u, y + j, y + j ? row - line : NULL, j < here ? row : NULL, job->bias, results);
            else
                repeat_row(u, y + j, row, job->bias, results);
        }
        last = here;
    }
}

static void work_narrow(void *job) { work(job); }

static WIDE void work_wide(void *job) { work(job); }

/* memory: the map and the weights; the bias, where there is one; the results; scratch memory, for each thread (group + 1)
   rows of products. Images are in channels-last memory. */
EXPORTED int oprack_upsampled(const void *settings, void *const *memory, int64_t threads)
{
    const struct upsampled *u = settings;
    struct job job = {u, memory[0], memory[1], u->biased ? memory[2] : NULL, memory[3 + u->biased], memory[2 + u->biased]};
    const int64_t multiplications = u->images * u->height * u->width * u->products * u->channels;
    pool_run(HAS_WIDE ? work_wide : work_narrow, &job, multiplications < SHARED ? 1 : threads);
    return 0;
}
