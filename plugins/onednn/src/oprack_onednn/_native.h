/* What the C files of this library say to the compiler. */

/* A function that Python finds; all others are hidden. */
#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

/* Part of each caller, and so compiled for the instructions of each. */
#define INLINE static inline __attribute__((always_inline))

/* Elements of a loop depend on no other ones, though results may take the place of what they are made of. */
#if defined(__clang__)
#define APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define APART _Pragma("GCC ivdep")
#endif
