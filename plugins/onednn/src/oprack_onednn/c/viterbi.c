/* Viterbi's algorithm: the best path of labels through sequences of scores, the first of equally good labels. */

#include "exit.h"
#include "native.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 8, PARTS = 2, LANES = PART * PARTS };
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 2")
#endif

typedef float vec __attribute__((vector_size(4 * PART)));
typedef int32_t mask __attribute__((vector_size(4 * PART)));

/* emission: [rows, tags], transition: [2 + tags, tags]: added to the first row, to the last one, and from row to column.
   first, lengths: of `count` sequences, in rows. path: [rows], of which those outside of sequences stay as they are. */
struct paths {
    int64_t count, tags;
    const float *emission, *transition;
    const int64_t *first, *lengths;
    int64_t *path;
};

/* For LANES labels of a row the best score of a path that ends there, without the row's own, and the label before. */
INLINE void best_of(const float *before, const float *follow, int64_t tags, int64_t width, float *best, int32_t *from)
{
    vec top[PARTS];
    mask label[PARTS];
    for (int k = 0; k < PARTS; k++) {
        memcpy(&top[k], follow + k * PART, sizeof(vec));
        top[k] = before[0] + top[k];
        label[k] = (mask){0};
    }
    for (int32_t i = 1; i < tags; i++) {
        UNROLL
        for (int k = 0; k < PARTS; k++) {
            vec sum;
            memcpy(&sum, follow + i * width + k * PART, sizeof(vec));
            sum = before[i] + sum;
            mask better = sum > top[k];
            top[k] = (vec)((better & (mask)sum) | (~better & (mask)top[k]));
            label[k] = (better & i) | (~better & label[k]);
        }
    }
    memcpy(best, top, sizeof top);
    memcpy(from, label, sizeof label);
}

INLINE void decode(const struct paths *p, float *memory, int32_t *backs)
{
    const int64_t tags = p->tags, width = (tags + LANES - 1) / LANES * LANES;
    float *follow = memory, *best = follow + tags * width, *next = best + width;
    for (int64_t i = 0; i < tags; i++)
        for (int64_t j = 0; j < width; j++)
            follow[i * width + j] = j < tags ? p->transition[(2 + i) * tags + j] : 0.0f;
    for (int64_t s = 0; s < p->count; s++) {
        const int64_t length = p->lengths[s];
        const float *row = p->emission + p->first[s] * tags;
        if (!length)
            continue;
        for (int64_t j = 0; j < tags; j++)
            best[j] = row[j] + p->transition[j];
        for (int64_t t = 1; t < length; t++) {
            row += tags;
            for (int64_t j = 0; j < width; j += LANES) {
                int32_t from[LANES];
                best_of(best, follow + j, tags, width, next + j, from);
                memcpy(backs + t * tags + j, from, (size_t)(tags - j < LANES ? tags - j : LANES) * sizeof(int32_t));
            }
            for (int64_t j = 0; j < tags; j++)
                best[j] = row[j] + next[j];
        }
        int32_t label = 0;
        for (int32_t j = 1; j < tags; j++)
            label = best[j] + p->transition[tags + j] > best[label] + p->transition[tags + label] ? j : label;
        int64_t *path = p->path + p->first[s];
        for (int64_t t = length - 1; t > 0; t--) {
            path[t] = label;
            label = backs[t * tags + label];
        }
        path[0] = label;
    }
}

static void decode_narrow(const struct paths *p, float *memory, int32_t *backs) { decode(p, memory, backs); }
static WIDE void decode_wide(const struct paths *p, float *memory, int32_t *backs) { decode(p, memory, backs); }

/* Returns 0, or 1 when nothing was done for want of memory. */
EXPORTED int64_t oprack_viterbi(const struct paths *p)
{
    int64_t width = (p->tags + LANES - 1) / LANES * LANES, longest = 0;
    for (int64_t s = 0; s < p->count; s++)
        longest = p->lengths[s] > longest ? p->lengths[s] : longest;
    exit_enter();
    float *memory = malloc((size_t)((p->tags + 2) * width) * sizeof(float));
    int32_t *backs = malloc((size_t)(longest * p->tags) * sizeof(int32_t));
    int64_t failed = !memory || !backs;
    if (!failed)
        (HAS_WIDE ? decode_wide : decode_narrow)(p, memory, backs);
    free(memory);
    free(backs);
    exit_leave();
    return failed;
}
