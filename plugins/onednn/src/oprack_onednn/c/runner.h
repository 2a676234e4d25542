/* The run of a stretch, for the thread in the background. */

#ifndef ONEDNN_RUNNER_H
#define ONEDNN_RUNNER_H

#include "native.h"

#include <stdint.h>

struct stretch;

/* Returns 0, -1 when something is not an ordinary number, or oneDNN's status of the primitive that failed. */
EXPORTED int64_t oprack_runner_run(struct stretch *stretch);

#endif
