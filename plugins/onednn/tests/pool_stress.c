/* Runs regions on the pool and counts who did what: exits with 0 when each share was done once, and says what was not.

   It is compiled together with _pool.c, whose inside it sees. */

#include "_pool.c"

#include <stdio.h>

#define SHARES 8

static int failures;

static void check(int holds, const char *what)
{
    if (!holds && __atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST) < 10)
        fprintf(stderr, "%s\n", what);
}

struct region {
    unsigned count, done[SHARES], passed, depth, barrier;
};

static void inner(void *data)
{
    (void)data;
    check(pool_count() == 1 && pool_number() == 0 && pool_depth() == 2, "a region inside a share has another thread");
}

static void share(void *data)
{
    struct region *region = data;
    unsigned number = pool_number();
    check(pool_count() == region->count && number < region->count && pool_depth() == 1, "a wrong number");
    __atomic_add_fetch(&region->done[number], 1, __ATOMIC_SEQ_CST);
    if (region->depth) {
        pool_start(inner, NULL, 4);
        inner(NULL);
        pool_end();
    }
    for (unsigned i = 1; i <= region->barrier; i++) {
        __atomic_add_fetch(&region->passed, 1, __ATOMIC_SEQ_CST);
        pool_barrier();
        check(__atomic_load_n(&region->passed, __ATOMIC_SEQ_CST) == i * region->count, "a barrier was passed early");
        pool_barrier();
    }
}

static void run(unsigned count, unsigned depth, unsigned barriers)
{
    struct region region = {.count = count, .depth = depth, .barrier = barriers};
    pool_start(share, &region, count);
    share(&region);
    pool_end();
    check(pool_depth() == 0, "still in a region");
    for (unsigned i = 0; i < SHARES; i++)
        check(region.done[i] == (i < count), "a share was not done once");
}

static void *regions(void *data)
{
    unsigned seed = *(unsigned *)data;
    for (int i = 0; i < 4000; i++) {
        seed = seed * 1664525 + 1013904223;
        run(1 + (seed >> 16) % SHARES, (seed >> 24) & 1, seed >> 28 ? 0 : 2);
        if (!(i % 400))
            usleep(1000); /* long enough for workers to sleep */
        if (i % 1000 == 500 && own) { /* as after a delay */
            rest_after(own, DELAY, nanoseconds());
            check(own->rest_until > nanoseconds(), "the team does not rest");
            run(SHARES, 0, 2);
        }
    }
    return NULL;
}

int main(void)
{
    unsigned seeds[3] = {1, 2, 3};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(threads + i, NULL, regions, seeds + i);
    regions(seeds + 2);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return failures != 0;
}
