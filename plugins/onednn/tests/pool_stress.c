/* Runs regions on the pool and counts who did what: exits with 0 when each share was done once, and says what was not.

   It is compiled together with pool.c, whose inside it sees. */

#include "pool.c"

#include <stdio.h>
#include <sys/wait.h>

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
            rest_after(own, SAVED_MOST + DELAY, nanoseconds());
            check(own->rest_until > nanoseconds(), "the team does not rest");
            run(SHARES, 0, 2);
        }
    }
    return NULL;
}

/* Shares that wait for each other by a barrier of their own, as some of oneDNN's machine code does. */
static void meet(void *data)
{
    unsigned *arrived = data;
    int64_t begin = nanoseconds();
    idle_spin = IDLE_SPIN; /* so that it is known when the worker will sleep */
    __atomic_add_fetch(arrived, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(arrived, __ATOMIC_SEQ_CST) < pool_count()) {
        if (nanoseconds() - begin < INT64_C(5000000000))
            continue;
        check(0, "a share that others wait for was never begun");
        ring(now.team);
        begin = nanoseconds();
    }
}

/* The team begins to rest just when its worker goes to sleep. */
static void *rests(void *data)
{
    unsigned seed = 1;
    (void)data;
    for (int i = 0; i < 2000 && !failures; i++) {
        unsigned arrived = 0;
        seed = seed * 1664525 + 1013904223;
        pool_run(meet, &arrived, 2);
        for (int64_t begin = nanoseconds(); nanoseconds() - begin < IDLE_SPIN - 5000 + (seed >> 18);)
            ;
        own->rest = 100000;
        rest_after(own, SAVED_MOST + DELAY, nanoseconds());
        arrived = 0;
        pool_run(meet, &arrived, 2);
        while (nanoseconds() < own->rest_until)
            ;
    }
    return NULL;
}

/* Workers that sleep are woken on other CPUs than that of the thread that wakes them, wherever that one has gone. */
static void *apart(void *data)
{
    cpu_set_t allowed, mine, theirs;
    (void)data;
    run(2, 0, 0);
    check(!pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed), "no CPUs");
    for (int cpu = 0, moves = 0; cpu < CPU_SETSIZE && moves < 3 && CPU_COUNT(&allowed) > 1; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        CPU_ZERO(&mine);
        CPU_SET(cpu, &mine);
        pthread_setaffinity_np(pthread_self(), sizeof mine, &mine);
        for (int i = 0; i < 1000 && !__atomic_load_n(&own->asleep, __ATOMIC_SEQ_CST); i++)
            usleep(1000);
        run(2, 0, 0);
        pthread_getaffinity_np(own->threads[0], sizeof theirs, &theirs);
        check(!CPU_ISSET(cpu, &theirs) && CPU_COUNT(&theirs) == CPU_COUNT(&allowed) - 1, "a worker is not kept apart");
        moves++;
    }
    return NULL;
}

/* A child process has a team of its own. */
static void *forks(void *data)
{
    int status = 1;
    (void)data;
    run(3, 0, 2);
    pid_t child = fork();
    if (!child) {
        check(!own->workers, "the workers of the parent process are counted");
        run(3, 0, 2);
        check(own->workers == 2, "there are no workers");
        _exit(failures != 0);
    }
    waitpid(child, &status, 0);
    check(!status, "the child process failed");
    run(3, 0, 2);
    return NULL;
}

static void alone(void *(*function)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, function, NULL);
    pthread_join(thread, NULL);
}

int main(void)
{
    alone(apart);
    alone(forks);
    pool_serves = 1;
    alone(rests);
    unsigned seeds[3] = {1, 2, 3};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(threads + i, NULL, regions, seeds + i);
    regions(seeds + 2);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return failures != 0;
}
