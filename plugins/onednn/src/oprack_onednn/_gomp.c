/* Puts the threads of _pool.c in the place of libgomp's, for one loaded library.

   What a library calls in another one goes through addresses that the dynamic linker wrote when it loaded it. Those of
   libgomp's functions are written over here, all of them or none, and no other library in the process notices. */

#define _GNU_SOURCE
#include "_native.h"
#include "_pool.h"

#include <stddef.h>
#include <stdint.h>

#ifdef POOL

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int (*gomp_max_threads)(void), (*gomp_in_parallel)(void), (*gomp_num_threads)(void), (*gomp_thread_num)(void);
static __thread struct {
    long start, step, chunk, iterations, turn;
} loop;

static void parallel_start(share_function function, void *data, unsigned count)
{
    pool_start(function, data, count ? count : (unsigned)gomp_max_threads());
}

static void parallel(share_function function, void *data, unsigned count, unsigned flags)
{
    (void)flags;
    parallel_start(function, data, count);
    function(data);
    pool_end();
}

static int num_threads(void) { return pool_depth() ? (int)pool_count() : gomp_num_threads(); }

static int thread_num(void) { return pool_depth() ? (int)pool_number() : gomp_thread_num(); }

static int in_parallel(void) { return pool_depth() ? pool_depth() > 1 || pool_count() > 1 : gomp_in_parallel(); }

/* The next part of a loop with static scheduling: whether there is one, and from where to where. */
static char loop_next(long *begin, long *end)
{
    long count = num_threads(), number = thread_num(), turn = loop.turn++, first, behind;
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

static char loop_start(long start, long behind, long step, long chunk, long *begin, long *end)
{
    long iterations = (behind - start + step + (step > 0 ? -1 : 1)) / step;
    loop.start = start;
    loop.step = step;
    loop.chunk = chunk;
    loop.iterations = iterations > 0 ? iterations : 0;
    loop.turn = 0;
    return loop_next(begin, end);
}

static void nothing(void) {}

/* What replaces a function of libgomp; NULL for one that is not known. */
static uintptr_t replacement(const char *name)
{
    const struct {
        const char *name;
        uintptr_t address;
    } known[] = {
        {"omp_get_max_threads", (uintptr_t)gomp_max_threads},
        {"GOMP_parallel", (uintptr_t)parallel},
        {"GOMP_parallel_start", (uintptr_t)parallel_start},
        {"GOMP_parallel_end", (uintptr_t)pool_end},
        {"GOMP_barrier", (uintptr_t)pool_barrier},
        {"GOMP_loop_static_start", (uintptr_t)loop_start},
        {"GOMP_loop_static_next", (uintptr_t)loop_next},
        {"GOMP_loop_end_nowait", (uintptr_t)nothing},
        {"omp_get_num_threads", (uintptr_t)num_threads},
        {"omp_get_thread_num", (uintptr_t)thread_num},
        {"omp_in_parallel", (uintptr_t)in_parallel},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name))
            return known[i].address;
    return 0;
}

/* Where the linker made a library's addresses read-only. */
struct range {
    uintptr_t base, begin, end;
};

static int find_read_only(struct dl_phdr_info *info, size_t size, void *found)
{
    struct range *range = found;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    (void)size;
    if (info->dlpi_addr != range->base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            range->begin = (range->base + info->dlpi_phdr[i].p_vaddr) & ~page;
            range->end = (range->base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz) & ~page;
        }
    return 1;
}

/* Go through the addresses of libgomp's functions in a library; write those that replace them if `write`. Returns the
   name of a function that has no replacement, or NULL. */
static const char *each(const struct link_map *map, int write)
{
    uintptr_t found[DT_JMPREL + 1] = {0};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag >= 0 && entry->d_tag <= DT_JMPREL)
            found[entry->d_tag] = entry->d_un.d_ptr;
    const ElfW(Sym) *symbols = (const void *)found[DT_SYMTAB];
    const char *names = (const char *)found[DT_STRTAB];
    const uintptr_t tables[2][2] = {{found[DT_RELA], found[DT_RELASZ]}, {found[DT_JMPREL], found[DT_PLTRELSZ]}};
    for (int t = 0; t < 2; t++) {
        const ElfW(Rela) *entry = (const void *)tables[t][0];
        for (size_t i = 0; entry && i < tables[t][1] / sizeof *entry; i++) {
            const char *name = names + symbols[ELF64_R_SYM(entry[i].r_info)].st_name;
            if (!ELF64_R_SYM(entry[i].r_info) || (strncmp(name, "GOMP_", 5) && strncmp(name, "omp_", 4)))
                continue;
            uintptr_t address = replacement(name);
            if (!address || entry[i].r_addend)
                return name;
            if (write)
                *(uintptr_t *)(map->l_addr + entry[i].r_offset) = address;
        }
    }
    return NULL;
}

/* Let a library, by what dlopen gave for it, run on our threads. Returns NULL, or why nothing was changed. */
EXPORTED const char *oprack_pool_install(void *library)
{
    struct link_map *map;
    struct range range = {0, 0, 0};
    const char *unknown;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map))
        return "dlinfo";
    *(void **)&gomp_max_threads = dlsym(library, "omp_get_max_threads");
    *(void **)&gomp_in_parallel = dlsym(library, "omp_in_parallel");
    *(void **)&gomp_num_threads = dlsym(library, "omp_get_num_threads");
    *(void **)&gomp_thread_num = dlsym(library, "omp_get_thread_num");
    if (!gomp_max_threads || !gomp_in_parallel || !gomp_num_threads || !gomp_thread_num)
        return "dlsym";
    if ((unknown = each(map, 0)))
        return unknown;
    range.base = map->l_addr;
    dl_iterate_phdr(find_read_only, &range);
    size_t size = range.end - range.begin;
    if (size && mprotect((void *)range.begin, size, PROT_READ | PROT_WRITE))
        return "mprotect";
    each(map, 1);
    if (size)
        mprotect((void *)range.begin, size, PROT_READ);
    pool_serves = 1;
    return NULL;
}

#else

EXPORTED const char *oprack_pool_install(void *library)
{
    return library ? "this system" : "";
}

#endif
