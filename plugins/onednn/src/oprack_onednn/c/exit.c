/* Lets no native call be under way when the process ends.

   Python ends while daemon threads run: it frees what belongs to them, scratch memory for one, and oneDNN takes its own
   data down. A native call that is under way would go on in memory that is gone. So before Python does so, those under
   way are waited for, and no new one begins: its thread would not get the interpreter's lock again in any case. */

#define _GNU_SOURCE
#include "exit.h"
#include "native.h"
#include "pool.h"

#ifdef POOL

#include <pthread.h>
#include <time.h>

/* Milliseconds for which calls under way are waited for at most, and for which others do not begin once none is, unless
   Python ends earlier: an exit handler that runs later may wait for a thread that computes. */
#define PATIENCE 10000
#define MOST 2000

int exit_lost;
static int32_t under_way, ended;
static int64_t held_until;
static pthread_t ender; /* the thread that runs Python's exit handlers, whose calls hold nothing up */
static int (*python_ends)(void);
static __thread int depth;

static int64_t milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void sleep_a_little(void)
{
    const struct timespec t = {0, 200000};
    nanosleep(&t, NULL);
}

/* The calling thread's call is counted. */
static __attribute__((noinline, cold)) void hold(void)
{
    if (pthread_equal(pthread_self(), ender))
        return;
    __atomic_sub_fetch(&under_way, 1, __ATOMIC_SEQ_CST);
    while (milliseconds() < __atomic_load_n(&held_until, __ATOMIC_SEQ_CST) || python_ends())
        sleep_a_little();
    __atomic_add_fetch(&under_way, 1, __ATOMIC_SEQ_CST);
}

void exit_enter(void)
{
    if (depth++)
        return;
    /* the other thread sets `ended` before it looks at the count, so that one of the two sees what the other one wrote */
    __atomic_add_fetch(&under_way, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ended, __ATOMIC_SEQ_CST))
        hold();
}

void exit_leave(void)
{
    if (!--depth)
        __atomic_sub_fetch(&under_way, 1, __ATOMIC_SEQ_CST);
}

/* Calls of other threads are not in a forked child, and what they had locked stays locked. */
static void in_child(void)
{
    exit_lost |= under_way > (depth > 0);
    under_way = depth > 0;
}

/* Set the function that says whether Python takes itself down. */
EXPORTED void oprack_exit_install(void *is_finalizing)
{
    if (!python_ends)
        pthread_atfork(NULL, NULL, in_child);
    *(void **)&python_ends = is_finalizing;
}

/* To be called when the process begins to end. Returns when no call is under way, or after PATIENCE milliseconds. */
EXPORTED void oprack_exit_begin(void)
{
    if (!python_ends || __atomic_load_n(&ended, __ATOMIC_SEQ_CST))
        return;
    ender = pthread_self();
    const int64_t latest = milliseconds() + PATIENCE;
    __atomic_store_n(&held_until, INT64_MAX, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&under_way, __ATOMIC_SEQ_CST) && milliseconds() < latest)
        sleep_a_little();
    /* counted from here: of a long wait nothing would be left in which Python begins to end */
    __atomic_store_n(&held_until, milliseconds() + MOST, __ATOMIC_SEQ_CST);
}

#else

int exit_lost;

void exit_enter(void) {}

void exit_leave(void) {}

EXPORTED void oprack_exit_install(void *is_finalizing) { (void)is_finalizing; }

EXPORTED void oprack_exit_begin(void) {}

#endif

/* For native calls that are not this library's. */
EXPORTED void oprack_exit_enter(void) { exit_enter(); }

EXPORTED void oprack_exit_leave(void) { exit_leave(); }

EXPORTED int oprack_exit_lost(void) { return exit_lost; }
