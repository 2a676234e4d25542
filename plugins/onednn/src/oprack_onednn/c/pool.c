/* The threads that oneDNN's parallel regions run on, in place of those of libgomp.

   A region is a function that each thread of a team calls for a share of the work. With libgomp a region ends when every
   thread has woken up and done its share, so one that sleeps, or whose core another process has, delays each of the
   hundred regions of a net. Here a share is done by whoever comes first: the thread that starts a region does its own,
   then those that nobody has begun, and waits for none but those under way. Work is cut into shares as before, so
   results are the same, bit by bit. Each thread that starts regions has a team of its own.

   Plain C99 with the GNU compilers' atomics; openmp.c puts it in the place of libgomp. */

#define _GNU_SOURCE
#include "exit.h"
#include "pool.h"

#ifdef POOL

#include <immintrin.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE __attribute__((aligned(64)))
#define MOST 1024 /* threads of a team */
#define FEW 8     /* workers of a team that are kept off the starting thread's CPU; larger ones have CPUs to choose from */

/* Nanoseconds that a thread without work spins before it sleeps, within a run of many regions and behind it, and that the
   starting one spins for shares under way. To wake a thread costs the starting one some ten thousand, and takes several
   times as long; between two runs of a small net Python needs less than IDLE_SPIN, but for caches that are cold and clocks
   that are slow. So a worker that was woken within PATIENT spins that long behind a run, until that was in vain twice. */
#define RUN_SPIN 200000
#define IDLE_SPIN 150000
#define PATIENT 1000000
#define JOIN_SPIN 100000
/* A share that ends this much later than the starting thread's was delayed by another process. Where delays cost more
   than the team has saved of late, which counts up to SAVED_MOST, it rests, and the starting thread does all shares: for
   REST_LEAST nanoseconds, twice as long each time that it happens again. It is most of a scheduler's slice: less than
   that, and shares that are slow by themselves would put the team to rest. */
#define DELAY 1000000
#define SAVED_MOST 10000000
#define REST_LEAST 2000000
#define REST_MOST 64000000
#define UNTIL_TOLD (INT64_MAX / 2)
#define QUIET 256 /* regions without a delay after which a rest is short again */

struct share {
    uint64_t taken; /* the last region in which somebody took this share */
} LINE;

/* A thread that starts regions, and its workers. Share 0 is that of the thread that starts. */
struct team {
    uint64_t region LINE; /* its number << 16 | how many shares; all that belongs to it stays until these are done */
    share_function function;
    void *data;
    uint32_t count;
    uint32_t control; /* how the starting thread rounds, and whether it takes denormal numbers for 0 */
    int32_t remaining LINE; /* shares of workers that are not done */
    uint32_t joining;       /* 1: the starting thread sleeps until they are */
    uint32_t bell LINE;     /* workers sleep on it */
    uint32_t asleep, stop, running;
    int64_t rest_until;
    uint32_t barrier LINE; /* how many barriers were passed */
    uint32_t arrived;
    int64_t started LINE; /* from here on: of the starting thread alone */
    int64_t rest, saved;
    uint32_t quiet, workers;
    int avoided; /* the CPU that workers are kept off; -1: none yet */
    pthread_t threads[MOST];
    cpu_set_t allowed[FEW]; /* CPUs of the first workers */
    struct share shares[MOST];
};

struct worker {
    struct team *team;
    uint32_t number;
};

/* What the calling thread does: its share of a region, and how deep regions lie in each other. */
static __thread struct {
    struct team *team;
    uint32_t number, count, depth;
} now;
static __thread struct team *own;
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;
int pool_serves;
/* How long the calling thread, a worker, spins behind a run, and how often PATIENT was not enough since it was. */
static __thread int64_t idle_spin = IDLE_SPIN;
static __thread uint32_t vain;

/* The control bits of the calling thread's arithmetic; the lowest six say what happened. */
static uint32_t control(void) { return _mm_getcsr() & ~UINT32_C(63); }

static int64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Sleep while `*word` is `value`, for `most` nanoseconds if that is not 0. */
static void sleep_on(uint32_t *word, uint32_t value, int64_t most)
{
    struct timespec t = {most / 1000000000, most % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, most ? &t : NULL, NULL, 0);
}

static void wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Keep the workers off the CPU of the calling thread. A scheduler may start a thread on the CPU of the one that wakes it,
   to save power or caches: both spin there then, in turns of several milliseconds, while another CPU is idle. */
static void keep_apart(struct team *team)
{
    int cpu = sched_getcpu();
    if (cpu == team->avoided || cpu < 0 || cpu >= CPU_SETSIZE || team->workers > FEW)
        return;
    team->avoided = cpu;
    for (uint32_t i = 0; i < team->workers; i++) {
        cpu_set_t others = team->allowed[i];
        CPU_CLR(cpu, &others);
        if (CPU_COUNT(&others))
            pthread_setaffinity_np(team->threads[i], sizeof others, &others);
    }
}

static void ring(struct team *team)
{
    __atomic_add_fetch(&team->bell, 1, __ATOMIC_SEQ_CST);
    wake(&team->bell);
}

/* Do a share of a worker's, unless somebody has it, and return whether it was free. A region does not end before all its
   shares are done, so it is still the same one then. */
static int take(struct team *team, uint64_t region, uint32_t number)
{
    uint64_t *taken = &team->shares[number].taken, known = __atomic_load_n(taken, __ATOMIC_RELAXED);
    if (known >= region || !__atomic_compare_exchange_n(taken, &known, region, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return 0;
    now.team = team;
    now.number = number;
    now.count = team->count;
    now.depth = 1;
    if (control() != team->control)
        _mm_setcsr(team->control);
    team->function(team->data);
    now.depth = 0;
    if (!__atomic_sub_fetch(&team->remaining, 1, __ATOMIC_SEQ_CST) &&
        __atomic_exchange_n(&team->joining, 0, __ATOMIC_SEQ_CST))
        wake(&team->joining);
    return 1;
}

/* Wait until there is another region than `seen`, or until it may be: spin for a while, then sleep. */
static void idle(struct team *team, uint64_t seen)
{
    int64_t begin = nanoseconds();
    for (int64_t at = begin;
         at - begin < idle_spin || (at - begin < RUN_SPIN && __atomic_load_n(&team->running, __ATOMIC_RELAXED));
         at = nanoseconds()) {
        int64_t rest = __atomic_load_n(&team->rest_until, __ATOMIC_RELAXED) - at;
        for (int i = 0; i < 64; i++) {
            if (__atomic_load_n(&team->region, __ATOMIC_ACQUIRE) != seen)
                return;
            __builtin_ia32_pause();
        }
        if (rest > 0) {
            sleep_on(&team->bell, __atomic_load_n(&team->bell, __ATOMIC_SEQ_CST), rest);
            return;
        }
    }
    uint32_t bell = __atomic_load_n(&team->bell, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&team->asleep, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&team->region, __ATOMIC_SEQ_CST) == seen && !__atomic_load_n(&team->stop, __ATOMIC_SEQ_CST)) {
        /* a rest that has begun since: the bell does not ring for regions within it */
        int64_t rest = __atomic_load_n(&team->rest_until, __ATOMIC_RELAXED) - nanoseconds();
        sleep_on(&team->bell, bell, rest > 0 ? rest : 0);
    }
    __atomic_sub_fetch(&team->asleep, 1, __ATOMIC_SEQ_CST);
    if (nanoseconds() - begin < PATIENT) {
        idle_spin = PATIENT;
        vain = 0;
    } else if (++vain > 1) {
        idle_spin = IDLE_SPIN;
    }
}

static void *work(void *argument)
{
    struct worker worker = *(struct worker *)argument;
    uint64_t seen = 0;
    free(argument);
    while (!__atomic_load_n(&worker.team->stop, __ATOMIC_ACQUIRE)) {
        uint64_t region = __atomic_load_n(&worker.team->region, __ATOMIC_ACQUIRE);
        if (region == seen)
            idle(worker.team, seen);
        else if (worker.number < (region & 0xffff))
            take(worker.team, region, worker.number);
        seen = region;
    }
    return NULL;
}

/* Called when a thread that started regions ends. */
static void stop(void *argument)
{
    struct team *team = argument;
    __atomic_store_n(&team->stop, 1, __ATOMIC_SEQ_CST);
    ring(team);
    for (uint32_t i = 0; i < team->workers; i++)
        pthread_join(team->threads[i], NULL);
    free(team);
}

/* A child process has the thread that forked alone: its team begins anew. */
static void after_fork(void)
{
    if (own) {
        own->workers = own->asleep = 0;
        own->avoided = -1;
    }
}

static void make_key(void)
{
    pthread_key_create(&at_exit, stop);
    pthread_atfork(NULL, NULL, after_fork);
}

/* The calling thread's team, of `count` threads as far as the system has them. */
static struct team *grown(uint32_t count)
{
    sigset_t all, before;
    void *memory;
    pthread_once(&once, make_key);
    if (!own) {
        if (posix_memalign(&memory, 64, sizeof(struct team)))
            return NULL;
        own = memset(memory, 0, sizeof(struct team));
        own->rest = REST_LEAST;
        own->avoided = -1;
        pthread_setspecific(at_exit, own);
    }
    /* a handler on a worker's stack would write over what some of oneDNN's machine code keeps there */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (own->workers + 1 < count) {
        struct worker *worker = malloc(sizeof(struct worker));
        if (!worker)
            break;
        *worker = (struct worker){own, own->workers + 1};
        if (pthread_create(own->threads + own->workers, NULL, work, worker)) {
            free(worker);
            break;
        }
        if (own->workers < FEW)
            pthread_getaffinity_np(own->threads[own->workers], sizeof(cpu_set_t), own->allowed + own->workers);
        pthread_setname_np(own->threads[own->workers], "oprack-pool");
        own->workers++;
        own->avoided = -1;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return own;
}

void pool_running(int running)
{
    if (own)
        __atomic_store_n(&own->running, running, __ATOMIC_RELAXED);
}

struct team *pool_team(void) { return grown(1); }

void pool_rest(struct team *team, int rests)
{
    __atomic_store_n(&team->rest_until, rests ? UNTIL_TOLD : 0, __ATOMIC_SEQ_CST);
    if (!rests)
        ring(team);
}

/* Starts a region; the caller then does share 0 itself, and calls pool_end. */
void pool_start(share_function function, void *data, unsigned count)
{
    struct team *team = own;
    if (now.depth++)
        return; /* a region inside a share has one thread */
    exit_enter();
    if (count > MOST)
        count = MOST;
    if (count > 1 && (!team || team->workers + 1 < count))
        team = grown(count);
    if (team && count > team->workers + 1)
        count = team->workers + 1; /* the system has no more threads; at a barrier, a share without one would be missed */
    now.number = 0;
    now.count = count > 1 && team ? count : 1;
    now.team = now.count > 1 ? team : NULL;
    if (!now.team)
        return;
    team->count = count;
    team->function = function;
    team->data = data;
    team->control = control();
    team->started = nanoseconds();
    __atomic_store_n(&team->remaining, (int32_t)count - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&team->region, ((team->region >> 16) + 1) << 16 | count, __ATOMIC_SEQ_CST);
    keep_apart(team); /* the scheduler may move this thread as well, and a worker that spins does not give way */
    if (__atomic_load_n(&team->asleep, __ATOMIC_SEQ_CST) && team->started >= team->rest_until)
        ring(team);
}

/* Let the team rest when another process delayed shares for longer than the team saves. */
static void rest_after(struct team *team, int64_t delay, int64_t at)
{
    if (delay < DELAY || (team->saved -= delay) >= 0) {
        if (++team->quiet == QUIET)
            team->rest = REST_LEAST;
        return;
    }
    team->saved = 0;
    team->quiet = 0;
    __atomic_store_n(&team->rest_until, at + team->rest, __ATOMIC_RELAXED);
    team->rest = team->rest < REST_MOST ? 2 * team->rest : REST_MOST;
    ring(team); /* nobody sleeps longer than the rest: a share may wait for another one at a barrier of its own */
}

void pool_end(void)
{
    struct team *team = now.team;
    if (now.depth > 1 || !team) {
        if (!--now.depth)
            exit_leave();
        return;
    }
    uint32_t others = team->count - 1;
    for (uint32_t i = 1, count = team->count; i < count; i++)
        others -= take(team, team->region, i);
    now.depth = 0;
    const int64_t done = nanoseconds();
    int64_t at = done;
    if (others) /* while a worker did its share, this thread did one as well */
        team->saved = team->saved + done - team->started < SAVED_MOST ? team->saved + done - team->started : SAVED_MOST;
    while (__atomic_load_n(&team->remaining, __ATOMIC_ACQUIRE)) {
        if (at - done < JOIN_SPIN) {
            for (int i = 0; i < 64 && __atomic_load_n(&team->remaining, __ATOMIC_ACQUIRE); i++)
                __builtin_ia32_pause();
        } else {
            __atomic_store_n(&team->joining, 1, __ATOMIC_SEQ_CST);
            if (__atomic_load_n(&team->remaining, __ATOMIC_SEQ_CST))
                sleep_on(&team->joining, 1, 0);
            __atomic_store_n(&team->joining, 0, __ATOMIC_SEQ_CST);
        }
        at = nanoseconds();
    }
    rest_after(team, (at - done) - (done - team->started), at);
    exit_leave();
}

void pool_run(share_function function, void *data, int64_t count)
{
    pool_start(function, data, pool_serves ? (unsigned)count : 1);
    function(data);
    pool_end();
}

void pool_barrier(void)
{
    struct team *team = now.team;
    if (now.depth != 1 || now.count < 2)
        return;
    uint32_t passed = __atomic_load_n(&team->barrier, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&team->arrived, 1, __ATOMIC_SEQ_CST) == now.count) {
        __atomic_store_n(&team->arrived, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&team->barrier, passed + 1, __ATOMIC_SEQ_CST);
        wake(&team->barrier);
        return;
    }
    int64_t begin = nanoseconds();
    while (__atomic_load_n(&team->barrier, __ATOMIC_ACQUIRE) == passed) {
        for (int i = 0; i < 64 && __atomic_load_n(&team->barrier, __ATOMIC_ACQUIRE) == passed; i++)
            __builtin_ia32_pause();
        if (nanoseconds() - begin > JOIN_SPIN) {
            ring(team); /* whoever has not begun may be resting */
            sleep_on(&team->barrier, passed, 0);
        }
    }
}

unsigned pool_count(void) { return now.depth == 1 ? now.count : 1; }

unsigned pool_number(void) { return now.depth == 1 ? now.number : 0; }

unsigned pool_depth(void) { return now.depth; }

#endif
