/* The threads of _pool.c, for _gomp.c. */

#if defined(__linux__) && defined(__x86_64__) && defined(__GNUC__)
#define POOL

typedef void (*share_function)(void *data);

/* Whether oneDNN runs on the pool's threads. */
extern int pool_serves;

void pool_start(share_function function, void *data, unsigned count);
void pool_end(void);
void pool_barrier(void);

/* Whether the calling thread is in a run of many regions: its workers then spin for longer before they sleep. */
void pool_running(int running);

/* Of the region that the calling thread works in, 1 and 0 outside: how many shares, and the number of its share. */
unsigned pool_count(void);
unsigned pool_number(void);

/* How many regions the calling thread is in, one inside the other. */
unsigned pool_depth(void);

#endif
