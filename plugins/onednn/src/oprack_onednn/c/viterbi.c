/* The labels of sequences that score best together, by Viterbi's algorithm. */

#include "native.h"
#include "pool.h"

#include <math.h>
#include <stdint.h>

/* first, lengths: of `count` sequences, the first row and how many rows there are; emission: rows of `tags` scores.
   start, stop: what the first and the last label add. follow: what a label adds behind another one, rows of `width`, a
   multiple of 2 LANES, for those before. scratch: for each thread `longest + 2` rows of `width`. path: gets the labels. */
struct viterbi {
    int64_t count, tags, width, longest;
    const int64_t *first, *lengths;
    const float *emission, *start, *stop, *follow;
    float *scratch;
    int64_t *path;
};

#define LANES 8
typedef float floats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define BOTH(mask, yes, no) (((ints)(yes) & (mask)) | ((ints)(no) & ~(mask)))

/* Of 2 LANES labels the best score with any label before, and which that is: the first of equally good ones. They stay in
   registers, which no compiler does with arrays. */
INLINE void best_before(const float *before, const float *follow, int64_t tags, int64_t width, float *best, int32_t *back)
{
    const floats *rows = (const floats *)follow;
    floats score = before[0] + rows[0], score2 = before[0] + rows[1];
    ints label = {0}, label2 = {0}, number = {0};
    for (int64_t i = 1; i < tags; i++) {
        rows = (const floats *)(follow + i * width);
        number = number + 1;
        floats sum = before[i] + rows[0], sum2 = before[i] + rows[1];
        ints better = sum > score, better2 = sum2 > score2;
        label = BOTH(better, number, label);
        label2 = BOTH(better2, number, label2);
        score = (floats)BOTH(better, sum, score);
        score2 = (floats)BOTH(better2, sum2, score2);
    }
    ((floats *)best)[0] = score;
    ((floats *)best)[1] = score2;
    ((ints *)back)[0] = label;
    ((ints *)back)[1] = label2;
}

INLINE void decode(const struct viterbi *v, int64_t number, float *best, float *next, int32_t *back)
{
    const int64_t tags = v->tags, width = v->width, length = v->lengths[number], row = v->first[number];
    const float *emission = v->emission + row * tags;
    int64_t *path = v->path + row, label = 0;
    if (!length)
        return;
    for (int64_t j = 0; j < tags; j++)
        best[j] = emission[j] + v->start[j];
    for (int64_t t = 1; t < length; t++) {
        float *last = best;
        emission += tags;
        for (int64_t j = 0; j < width; j += 2 * LANES)
            best_before(best, v->follow + j, tags, width, next + j, back + t * width + j);
        for (int64_t j = 0; j < tags; j++)
            next[j] += emission[j];
        best = next;
        next = last;
    }
    for (int64_t j = 1; j < tags; j++)
        label = best[j] + v->stop[j] > best[label] + v->stop[label] ? j : label;
    for (int64_t t = length - 1; t > 0; t--) {
        path[t] = label;
        label = back[t * width + label];
    }
    path[0] = label;
}

INLINE void decode_share(const struct viterbi *v)
{
    float *scratch = v->scratch + (int64_t)pool_number() * (v->longest + 2) * v->width;
    for (int64_t i = pool_number(); i < v->count; i += pool_count())
        decode(v, i, scratch, scratch + v->width, (int32_t *)(scratch + 2 * v->width));
}

static void narrow(const struct viterbi *v) { decode_share(v); }
static WIDE void wide(const struct viterbi *v) { decode_share(v); }

static void share(void *data)
{
    (HAS_WIDE ? wide : narrow)(data);
}

EXPORTED void oprack_viterbi(struct viterbi *v, int64_t threads)
{
    pool_run(share, v, threads);
}
