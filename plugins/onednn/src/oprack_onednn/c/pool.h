/* The threads of pool.c, for oneDNN's regions (openmp.c) and for loops of our own. */

#ifndef ONEDNN_POOL_H
#define ONEDNN_POOL_H

#include <stdint.h>

typedef void (*share_function)(void *data);

#if defined(__linux__) && defined(__x86_64__) && defined(__GNUC__)
#define POOL

/* Whether oneDNN runs on the pool's threads. */
extern int pool_serves;

void pool_start(share_function function, void *data, unsigned count);
void pool_end(void);
void pool_barrier(void);

/* Have `function` called by up to `count` threads, each for its share; by the calling one alone where oneDNN's regions
   run on libgomp's threads, which would be more than there are CPUs. */
void pool_run(share_function function, void *data, int64_t count);

/* Whether the calling thread is in a run of many regions: its workers then spin for longer before they sleep. */
void pool_running(int running);

/* The calling thread's team; NULL where there is no memory. Another thread may let its workers rest, so that the thread that
   starts regions does all shares, until it has them help again, in the region under way as well. */
struct team *pool_team(void);
void pool_rest(struct team *team, int rests);

/* Of the region that the calling thread works in, 1 and 0 outside: how many shares, and the number of its share. */
unsigned pool_count(void);
unsigned pool_number(void);

/* How many regions the calling thread is in, one inside the other. */
unsigned pool_depth(void);

#else

/* The calling thread has the only share. */
static inline void pool_run(share_function function, void *data, int64_t count)
{
    (void)count;
    function(data);
}

static inline void pool_running(int running) { (void)running; }
static inline unsigned pool_count(void) { return 1; }
static inline unsigned pool_number(void) { return 0; }

#endif

#endif
