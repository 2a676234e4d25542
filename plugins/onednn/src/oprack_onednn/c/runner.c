/* Runs chains of oneDNN's primitives, one after the other, without going back to Python in between.

   Plain C99 without any header of Python or oneDNN: what it calls comes as pointers, so one build serves every version
   of both. Python (runner.py) fills the structs, and each belongs to one Python thread. Fields are pointers and 64-bit
   numbers alone, so that no compiler puts gaps between them. */

#include "exit.h"
#include "native.h"
#include "pool.h"
#include "runner.h"
#include "spread.h"

#include <stdint.h>

#define ABI 30
#define NOT_ORDINARY (-1)

typedef int (*set_handle_function)(void *memory, void *handle);
typedef int (*execute_function)(const void *primitive, void *stream, int count, const void *arguments);
typedef void (*set_threads_function)(int count);

/* What chains of one Python thread share. arena: scratch memory. threads: how many primitives use now. */
struct thread {
    set_handle_function set_handle;
    execute_function execute;
    set_threads_function set_threads;
    void *stream;
    char *arena;
    int64_t capacity;
    int64_t threads;
};

/* A memory object that lies `offset` bytes behind an operand, or in scratch memory. */
struct place {
    void *memory;
    int64_t operand;
    int64_t offset;
};

/* A function of this library in the place of a primitive, which has the address of its struct, and one more to tell it
   from a primitive. */
struct native {
    int (*run)(const void *settings, void *const *memory, int64_t threads);
    const void *settings;
};

/* Where memory of such a function lies: `offset` bytes behind an operand, in scratch memory, or an address that stays. */
struct source {
    int64_t operand;
    int64_t offset;
};

#define IN_ARENA (-1)
#define STAYS (-2)
#define MOST_SOURCES 64
#define INVALID_ARGUMENTS 2 /* of oneDNN's statuses */

/* A primitive with its arguments. Without a primitive, a copy from scratch memory into operand `operand`, with the
   struct spread for arguments; or, without both, a look at `count` floats of that operand, which end the run when one of
   them is NaN or infinite. */
struct step {
    const void *primitive;
    const void *arguments; /* as oneDNN takes them, or sources */
    int64_t count;
    int64_t operand;
};

struct chain {
    const struct place *places;
    const struct place *scratch;
    const struct step *steps;
    int64_t place_count;
    int64_t scratch_count;
    int64_t step_count;
    int64_t operands;
    int64_t threads;
    char *arena; /* where its scratch memory lies now */
};

/* A value between two chains of a stretch, which lies in scratch memory. */
struct inner {
    int64_t value;
    int64_t offset;
};

/* Chains in a row. values: addresses. slots: for each operand of each chain the number of its value. */
struct stretch {
    struct thread *thread;
    struct chain *const *chains;
    char **values;
    const int64_t *slots;
    const struct inner *inners;
    int64_t chain_count;
    int64_t inner_count;
    char *arena;
    int64_t failed; /* number of the chain in which the last run ended */
};

/* Whether all floats are finite. Without an early end the loop becomes a few vector instructions. */
INLINE int all_ordinary(const uint32_t *bits, int64_t count)
{
    while (count > 0) {
        int64_t some = count < 4096 ? count : 4096;
        uint32_t found = 0;
        for (int64_t i = 0; i < some; i++)
            found |= (bits[i] & 0x7f800000u) == 0x7f800000u;
        if (found)
            return 0;
        bits += some;
        count -= some;
    }
    return 1;
}

static int ordinary_narrow(const uint32_t *bits, int64_t count) { return all_ordinary(bits, count); }

static WIDE int ordinary_wide(const uint32_t *bits, int64_t count) { return all_ordinary(bits, count); }

#define SHARED (1 << 16) /* floats from which on threads look at them together */

struct look {
    const uint32_t *bits;
    int64_t count;
    int (*ordinary)(const uint32_t *bits, int64_t count);
    int found;
};

static void look_share(void *data)
{
    struct look *look = data;
    int64_t number = pool_number(), shares = pool_count();
    int64_t begin = look->count * number / shares, end = look->count * (number + 1) / shares;
    if (!look->ordinary(look->bits + begin, end - begin))
        __atomic_store_n(&look->found, 1, __ATOMIC_RELAXED);
}

/* threads: how many may look. */
static int ordinary(const uint32_t *bits, int64_t count, int64_t threads)
{
    struct look look = {bits, count, HAS_WIDE ? ordinary_wide : ordinary_narrow, 0};
    if (count < SHARED || threads < 2)
        return look.ordinary(bits, count);
    pool_run(look_share, &look, threads);
    return !look.found;
}

/* Returns a status as oneDNN's. */
static int run_native(const struct thread *thread, const struct step *step, char *const *values, const int64_t *slots)
{
    const struct native *native = (const void *)((const char *)step->primitive - 1);
    const struct source *sources = step->arguments;
    void *memory[MOST_SOURCES];
    if (step->count > MOST_SOURCES)
        return INVALID_ARGUMENTS;
    for (int64_t i = 0; i < step->count; i++) {
        const int64_t operand = sources[i].operand;
        memory[i] = operand == STAYS      ? (char *)(uintptr_t)sources[i].offset
                    : operand == IN_ARENA ? thread->arena + sources[i].offset
                                          : values[slots[operand]] + sources[i].offset;
    }
    return native->run(native->settings, memory, thread->threads);
}

static int run_chain(struct thread *thread, struct chain *chain, char *const *values, const int64_t *slots)
{
    int status;
    for (int64_t i = 0; i < chain->place_count; i++) {
        const struct place *place = chain->places + i;
        if ((status = thread->set_handle(place->memory, values[slots[place->operand]] + place->offset)))
            return status;
    }
    if (chain->scratch_count && chain->arena != thread->arena) {
        for (int64_t i = 0; i < chain->scratch_count; i++) {
            const struct place *place = chain->scratch + i;
            if ((status = thread->set_handle(place->memory, thread->arena + place->offset)))
                return status;
        }
        chain->arena = thread->arena;
    }
    if (chain->threads && chain->threads != thread->threads) {
        thread->set_threads((int)chain->threads);
        thread->threads = chain->threads;
    }
    for (int64_t i = 0; i < chain->step_count; i++) {
        const struct step *step = chain->steps + i;
        if (step->primitive) {
            status = (uintptr_t)step->primitive & 1
                         ? run_native(thread, step, values, slots)
                         : thread->execute(step->primitive, thread->stream, (int)step->count, step->arguments);
            if (status)
                return status;
        } else if (step->arguments) {
            spread_run(step->arguments, thread->arena, values[slots[step->operand]], (unsigned)thread->threads);
        } else if (!ordinary((const uint32_t *)values[slots[step->operand]], step->count, thread->threads)) {
            return NOT_ORDINARY;
        }
    }
    return 0;
}

typedef int (*create_memory_function)(void **memory, const void *desc, void *engine, void *handle);
typedef int (*destroy_memory_function)(void *memory);

EXPORTED void oprack_memories_destroy(destroy_memory_function destroy, void **memories, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        destroy(memories[i]);
}

/* Make memory objects of descriptors and the addresses of what lies there, all or none. Returns oneDNN's status. */
EXPORTED int64_t oprack_memories_create(create_memory_function create, destroy_memory_function destroy, void *engine,
                                        const void *const *descs, void *const *handles, void **memories, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int status = create(memories + i, descs[i], engine, handles[i]);
        if (status) {
            oprack_memories_destroy(destroy, memories, i);
            return status;
        }
    }
    return 0;
}

EXPORTED int64_t oprack_runner_abi(void)
{
    return ABI;
}

/* Whether steps that are compiled for AVX-512 alone can be used. */
EXPORTED int oprack_widest_serves(void) { return HAS_WIDEST; }

static int64_t run(struct stretch *stretch)
{
    struct thread *thread = stretch->thread;
    const int64_t *slots = stretch->slots;
    if (stretch->inner_count && stretch->arena != thread->arena) {
        for (int64_t i = 0; i < stretch->inner_count; i++)
            stretch->values[stretch->inners[i].value] = thread->arena + stretch->inners[i].offset;
        stretch->arena = thread->arena;
    }
    for (int64_t i = 0; i < stretch->chain_count; i++) {
        struct chain *chain = stretch->chains[i];
        int status = run_chain(thread, chain, stretch->values, slots);
        if (status) {
            stretch->failed = i;
            return status;
        }
        slots += chain->operands;
    }
    return 0;
}

EXPORTED int64_t oprack_runner_run(struct stretch *stretch)
{
    int64_t status;
    exit_enter();
    pool_running(1);
    status = run(stretch);
    pool_running(0);
    exit_leave();
    return status;
}
