/* Compiles primitives on threads of its own, before somebody needs them.

   To compile a primitive is to write machine code, for which oneDNN takes up to a millisecond, and it takes one thread.
   For inputs of a new size hundreds of them are needed. Who knows which ones hands them over in the order in which they
   will be needed, and collects each of them later: what nobody has begun is then compiled by who collects it, and what
   is under way is waited for. */

#define _GNU_SOURCE
#include "exit.h"
#include "native.h"
#include "pool.h"

#include <stdint.h>
#include <stdlib.h>

#ifdef POOL

#include <pthread.h>
#include <signal.h>
#include <time.h>

#define MOST 64 /* threads */
#define IDLE 2  /* seconds after which a thread without work ends */

enum state { WAITING, RUNNING, DONE };

struct job {
    struct job *next, *before;
    const void *desc;
    void *primitive; /* NULL when oneDNN refused */
    int64_t threads; /* that the primitive will use */
    enum state state;
};

static int (*create)(void **primitive, const void *desc);
static void (*set_threads)(int count);

/* All of what follows belongs to who holds the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t something = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct job queue = {.next = &queue, .before = &queue};
static int64_t workers, idle, waiting, running;
static int ended, forked;

static void dequeue(struct job *job)
{
    job->before->next = job->next;
    job->next->before = job->before;
    waiting--;
}

static void *work(void *nothing)
{
    int64_t threads = 0;
    (void)nothing;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct job *job = queue.next;
        if (job == &queue) {
            struct timespec until;
            int ends;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += IDLE;
            idle++;
            ends = pthread_cond_timedwait(&something, &lock, &until) && queue.next == &queue;
            idle--;
            if (ends)
                break;
            continue;
        }
        dequeue(job);
        job->state = RUNNING;
        running++;
        pthread_mutex_unlock(&lock);
        if (job->threads != threads)
            set_threads((int)(threads = job->threads));
        if (create(&job->primitive, job->desc))
            job->primitive = NULL;
        pthread_mutex_lock(&lock);
        job->state = DONE;
        running--;
        pthread_cond_broadcast(&done);
    }
    workers--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Start a thread unless there are `count`. It takes no signals: its stack holds what machine code keeps there. */
static void start(int64_t count)
{
    sigset_t all, before;
    pthread_t thread;
    if (workers >= count || workers >= MOST)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!pthread_create(&thread, NULL, work, NULL)) {
        pthread_setname_np(thread, "oprack-compile");
        pthread_detach(thread);
        workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The threads are not in a forked child, and what they were at never ends. */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    exit_lost |= running > 0;
    ended = forked = 1;
}

/* Set the functions that are called: dnnl_primitive_create and omp_set_num_threads. */
EXPORTED void oprack_compile_install(void *create_primitive, void *set_num_threads)
{
    if (!create)
        pthread_atfork(NULL, NULL, in_child);
    *(void **)&create = create_primitive;
    *(void **)&set_threads = set_num_threads;
}

/* Have a primitive compiled that will use `threads` threads, on one of `count` threads. Returns what collects it, or
   NULL where nobody would compile it. The descriptor has to stay until then. */
EXPORTED struct job *oprack_compile_ahead(const void *desc, int64_t threads, int64_t count)
{
    struct job *job = NULL;
    pthread_mutex_lock(&lock);
    if (!ended && create && waiting >= idle)
        start(count); /* nobody is free for this one */
    if (!ended && workers && (job = malloc(sizeof *job))) {
        *job = (struct job){&queue, queue.before, desc, NULL, threads, WAITING};
        queue.before->next = job;
        queue.before = job;
        waiting++;
        if (idle)
            pthread_cond_signal(&something);
    }
    pthread_mutex_unlock(&lock);
    return job;
}

/* Returns the primitive, and ends the job. NULL when nobody has begun to compile it, or oneDNN refused. */
EXPORTED void *oprack_compile_collect(struct job *job)
{
    void *primitive;
    pthread_mutex_lock(&lock);
    if (job->state == WAITING)
        dequeue(job);
    while (job->state == RUNNING && !forked)
        pthread_cond_wait(&done, &lock);
    primitive = job->primitive;
    pthread_mutex_unlock(&lock);
    free(job);
    return primitive;
}

/* Whether a job has ended, so that collecting it takes no time. */
EXPORTED int oprack_compile_done(const struct job *job)
{
    enum state state;
    pthread_mutex_lock(&lock);
    state = job->state;
    pthread_mutex_unlock(&lock);
    return state == DONE;
}

/* Nothing more is compiled; returns when nothing is under way. To be called before the process ends, and oneDNN with it. */
EXPORTED void oprack_compile_end(void)
{
    pthread_mutex_lock(&lock);
    ended = 1;
    for (struct job *job = queue.next; job != &queue; job = queue.next) {
        dequeue(job);
        job->state = DONE;
    }
    while (running && !forked)
        pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
}

#else

EXPORTED void oprack_compile_install(void *create_primitive, void *set_num_threads)
{
    (void)create_primitive;
    (void)set_num_threads;
}

EXPORTED void *oprack_compile_ahead(const void *desc, int64_t threads, int64_t count)
{
    (void)desc;
    (void)threads;
    (void)count;
    return NULL;
}

EXPORTED void *oprack_compile_collect(void *job)
{
    (void)job;
    return NULL;
}

EXPORTED int oprack_compile_done(const void *job)
{
    (void)job;
    return 1;
}

EXPORTED void oprack_compile_end(void) {}

#endif
