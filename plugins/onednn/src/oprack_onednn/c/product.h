/* Products of rows with a matrix that was packed before: any number of rows, with nothing made for it. */

#include <stdint.h>

/* A packed matrix has blocks of COLUMNS columns, a cache line to a row, the rows of a block one after the other; columns
   behind the last are 0. */
#define COLUMNS 16

/* out = a w + bias, where w is packed, and bias may be NULL. A sum goes down its column from the first row to the last,
   whatever the tile, so numbers do not depend on how many rows there are. */
void product(const float *a, int64_t a_row, int64_t rows, const float *w, int64_t inner, int64_t columns,
             const float *bias, float *out, int64_t out_row);
