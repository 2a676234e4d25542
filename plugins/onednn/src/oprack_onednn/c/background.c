/* Runs stretches on a thread beside the one that owns them, which prepares what comes behind meanwhile.

   The thread has a team of its own, so that work is cut into as many shares as it is when the owner runs it, and results
   are the same, bit by bit. The team rests, since its CPUs are the owner's and those of who compiles, until the owner has
   nothing to do but wait. */

#define _GNU_SOURCE
#include "native.h"
#include "pool.h"
#include "runner.h"

#ifdef POOL

#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct background {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct stretch *stretch; /* what runs, or is to; NULL: nothing */
    struct team *team;
    int64_t status;
    uint32_t control; /* how the owner rounds, and whether it takes denormal numbers for 0 */
    int awaited, ends;
    pthread_t thread;
};

static __thread struct background *own;
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *work(void *argument)
{
    struct background *it = argument;
    pthread_mutex_lock(&it->lock);
    it->team = pool_team();
    while (!it->ends) {
        struct stretch *stretch = it->stretch;
        int64_t status;
        if (!stretch) {
            pthread_cond_wait(&it->changed, &it->lock);
            continue;
        }
        if (it->team)
            pool_rest(it->team, !it->awaited);
        pthread_mutex_unlock(&it->lock);
        _mm_setcsr(it->control);
        status = oprack_runner_run(stretch);
        pthread_mutex_lock(&it->lock);
        if (it->team)
            pool_rest(it->team, 1); /* or its workers would spin for more, on the CPUs of the owner's */
        it->status = status;
        it->stretch = NULL;
        pthread_cond_broadcast(&it->changed);
    }
    pthread_mutex_unlock(&it->lock);
    return NULL;
}

/* Called when the owner ends. */
static void end(void *argument)
{
    struct background *it = argument;
    pthread_mutex_lock(&it->lock);
    it->ends = 1;
    pthread_cond_broadcast(&it->changed);
    pthread_mutex_unlock(&it->lock);
    pthread_join(it->thread, NULL);
    free(it);
}

/* The thread is not in a forked child. */
static void after_fork(void)
{
    if (own)
        pthread_setspecific(at_exit, NULL);
    own = NULL;
}

static void make_key(void)
{
    pthread_key_create(&at_exit, end);
    pthread_atfork(NULL, NULL, after_fork);
}

/* The calling thread's, started on first use; NULL where the system has no more threads. */
static struct background *started(void)
{
    sigset_t all, before;
    struct background *it;
    int failed;
    pthread_once(&once, make_key);
    if (own || !(it = calloc(1, sizeof *it)))
        return own;
    pthread_mutex_init(&it->lock, NULL);
    pthread_cond_init(&it->changed, NULL);
    /* it takes no signals: its stack holds what machine code keeps there */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&it->thread, NULL, work, it);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        free(it);
        return NULL;
    }
    pthread_setname_np(it->thread, "oprack-ahead");
    pthread_setspecific(at_exit, own = it);
    return own;
}

/* Have a stretch run, which stays until oprack_background_wait, called in between, has returned. Returns whether it will. */
EXPORTED int oprack_background_start(struct stretch *stretch)
{
    struct background *it = started();
    if (!it)
        return 0;
    pthread_mutex_lock(&it->lock);
    it->stretch = stretch;
    it->control = _mm_getcsr();
    pthread_cond_broadcast(&it->changed);
    pthread_mutex_unlock(&it->lock);
    return 1;
}

EXPORTED int oprack_background_busy(void)
{
    int busy = 0;
    if (own) {
        pthread_mutex_lock(&own->lock);
        busy = own->stretch != NULL;
        pthread_mutex_unlock(&own->lock);
    }
    return busy;
}

/* Help with what runs until it has ended. Returns what it did; 0 where nothing ran since the last call. */
EXPORTED int64_t oprack_background_wait(void)
{
    struct background *it = own;
    int64_t status;
    if (!it)
        return 0;
    pthread_mutex_lock(&it->lock);
    it->awaited = 1;
    if (it->stretch && it->team)
        pool_rest(it->team, 0);
    while (it->stretch)
        pthread_cond_wait(&it->changed, &it->lock);
    it->awaited = 0;
    status = it->status;
    it->status = 0;
    pthread_mutex_unlock(&it->lock);
    return status;
}

#else

EXPORTED int oprack_background_start(struct stretch *stretch)
{
    (void)stretch;
    return 0;
}

EXPORTED int oprack_background_busy(void) { return 0; }

EXPORTED int64_t oprack_background_wait(void) { return 0; }

#endif
