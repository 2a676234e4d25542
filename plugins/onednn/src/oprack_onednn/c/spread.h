/* A copy of memory by tables, for runner.c. Fields are pointers and 64-bit numbers alone, as native_steps.py writes them. */

#include <stdint.h>

struct spread {
    const int32_t *rows, *columns; /* (position, result, target, count) */
    int64_t row_count, column_count;
    int64_t images, width;               /* width: floats of one result */
    int64_t image, row, row_result;      /* floats from one image, position or result to the next, where is read */
    int64_t column, column_result;
    int64_t to_image, to_row;            /* and where is written; columns lie side by side */
    int64_t adds;                        /* whether what is there is added to */
    int64_t from, to;                    /* offsets in bytes: in scratch memory, and of what is written in its operand */
};

void spread_run(const struct spread *spread, const char *from, char *to, unsigned threads);
