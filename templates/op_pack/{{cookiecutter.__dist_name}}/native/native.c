/* What kernels.py calls through native.py. It knows nothing of Python, so one build serves every version of it. */
#include <stddef.h>

#ifdef _WIN32
__declspec(dllexport)
#endif
void {{ cookiecutter.first_op }}(const float *x, float *out, size_t count, float factor)
{
    for (size_t i = 0; i < count; i++)
        out[i] = factor * x[i] * x[i];
}
