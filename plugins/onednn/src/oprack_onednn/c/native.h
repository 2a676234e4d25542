/* What the C files of this library say to the compiler. */

#include "pool.h"

/* A function that Python finds; all others are hidden. */
#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

/* A step where it does not serve, so that nobody asks for it. */
#define UNSERVED(name)                                                                                                 \
    EXPORTED int name(const void *settings, void *const *memory, int64_t threads)                                      \
    {                                                                                                                  \
        (void)settings, (void)memory, (void)threads;                                                                   \
        return 1;                                                                                                      \
    }

/* Part of each caller, and so compiled for the instructions of each. */
#define INLINE static inline __attribute__((always_inline))

/* A function that is compiled for AVX2, or for AVX-512, as well, and whether this CPU has it. */
#ifdef POOL
#define WIDE __attribute__((target("avx2")))
#define HAS_WIDE __builtin_cpu_supports("avx2")
#if defined(__clang__)
#define WIDEST __attribute__((target("avx512f,avx512dq")))
#else
#define WIDEST __attribute__((target("avx512f,avx512dq,prefer-vector-width=512")))
#endif
#define HAS_WIDEST (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
#else
#define WIDE
#define HAS_WIDE 0
#define WIDEST
#define HAS_WIDEST 0
#endif

/* Elements of a loop depend on no other ones, though results may take the place of what they are made of. */
#if defined(__clang__)
#define APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define APART _Pragma("GCC ivdep")

/* Before a loop of a number of turns that is known where it is compiled: what it indexes can stay in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

#endif
