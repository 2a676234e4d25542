/* The functions of OpenMP's library that oneDNN calls, on the threads of pool.c.

   build.py makes oneDNN's library call these in the place of libgomp's (openmp.map has their versions), so
   OpenMP's own library is not needed, and no other library in the process notices. */

#define _GNU_SOURCE
#include "native.h"
#include "pool.h"

#ifdef POOL

#include <sched.h>

/* Threads of the regions that the calling thread starts; 0: one for each CPU. */
static __thread int threads;
static __thread struct {
    long start, step, chunk, iterations, turn;
} loop;

EXPORTED int oprack_omp_get_max_threads(void)
{
    cpu_set_t allowed;
    if (threads)
        return threads;
    return sched_getaffinity(0, sizeof allowed, &allowed) ? 1 : CPU_COUNT(&allowed);
}

/* Called by us alone, so by nobody where oneDNN is on libgomp. */
EXPORTED void oprack_omp_set_num_threads(int count)
{
    pool_serves = 1;
    threads = count;
}

EXPORTED void oprack_GOMP_parallel_start(share_function function, void *data, unsigned count)
{
    pool_start(function, data, count ? count : (unsigned)oprack_omp_get_max_threads());
}

EXPORTED void oprack_GOMP_parallel_end(void) { pool_end(); }

EXPORTED void oprack_GOMP_barrier(void) { pool_barrier(); }

EXPORTED int oprack_omp_get_num_threads(void) { return (int)pool_count(); }

EXPORTED int oprack_omp_get_thread_num(void) { return (int)pool_number(); }

/* Also in a region of one thread, or in a share of a loop of ours: regions inside of these have one thread. */
EXPORTED int oprack_omp_in_parallel(void) { return pool_depth() > 0; }

/* The next part of a loop with static scheduling: whether there is one, and from where to where. */
EXPORTED char oprack_GOMP_loop_static_next(long *begin, long *end)
{
    long count = pool_count(), number = pool_number(), turn = loop.turn++, first, behind;
    if (loop.chunk) {
        first = (turn * count + number) * loop.chunk;
        behind = first + loop.chunk < loop.iterations ? first + loop.chunk : loop.iterations;
    } else {
        long size = loop.iterations / count, more = loop.iterations % count;
        first = number * size + (number < more ? number : more);
        behind = turn ? first : first + size + (number < more);
    }
    if (first >= behind)
        return 0;
    *begin = loop.start + first * loop.step;
    *end = loop.start + behind * loop.step;
    return 1;
}

EXPORTED char oprack_GOMP_loop_static_start(long start, long behind, long step, long chunk, long *begin, long *end)
{
    long iterations = (behind - start + step + (step > 0 ? -1 : 1)) / step;
    loop.start = start;
    loop.step = step;
    loop.chunk = chunk;
    loop.iterations = iterations > 0 ? iterations : 0;
    loop.turn = 0;
    return oprack_GOMP_loop_static_next(begin, end);
}

EXPORTED void oprack_GOMP_loop_end_nowait(void) {}

#endif
