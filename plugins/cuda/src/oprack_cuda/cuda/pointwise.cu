// Activations and their gradients, one pass over the elements. a, b, c: attributes of the op.
// sizes: in n, grad n, x n, out n, bias channels

__device__ A sigmoid_of(A x) { return A(1.) / (A(1.) + exp(-x)); }
__device__ A softplus_of(A x) { return (x > A(0.) ? x : A(0.)) + log1p(exp(-fabs(x))); }
__device__ A cdf_of(A x) { return A(0.5) * erfc(-x * A(0.70710678118654752440)); }
__device__ A pdf_of(A x) { return A(0.39894228040143267794) * exp(A(-0.5) * x * x); }
__device__ A tanh_cdf_of(A x) {
    return A(0.5) * (A(1.) + tanh(A(0.79788456080286535588) * x * (A(1.) + A(0.044715) * x * x)));
}
__device__ A between(A x, A low, A high) { return x < low ? low : x > high ? high : x; }

#define UNARY(NAME, VALUE)                                                                          \
    extern "C" __global__ void NAME(const T* in, T* out, i64 n, double a_, double b_, double c_) { \
        const A a = A(a_), b = A(b_), c = A(c_);                                                    \
        FOR_EACH(i, n) {                                                                            \
            const A x = A(in[i]);                                                                   \
            out[i] = T(VALUE);                                                                      \
        }                                                                                           \
        (void)a, (void)b, (void)c;                                                                  \
    }

// x: the input of the forward op, or its output where the formula needs only that. g: the gradient of the output.
#define UNARY_GRAD(NAME, VALUE)                                                                                      \
    extern "C" __global__ void NAME(const T* in, const T* grad, T* out, i64 n, double a_, double b_, double c_) { \
        const A a = A(a_), b = A(b_), c = A(c_);                                                                     \
        FOR_EACH(i, n) {                                                                                             \
            const A x = A(in[i]), g = A(grad[i]);                                                                    \
            out[i] = T(VALUE);                                                                                       \
        }                                                                                                            \
        (void)a, (void)b, (void)c;                                                                                   \
    }

UNARY(sigmoid, sigmoid_of(x))
UNARY_GRAD(sigmoid_grad, g * (x - x * x))
UNARY_GRAD(tanh_grad, g * (A(1.) - x * x))
UNARY(silu, x * sigmoid_of(x))
UNARY_GRAD(silu_grad, g * (sigmoid_of(x) * (A(1.) + x * (A(1.) - sigmoid_of(x)))))
// a: beta
UNARY(swish, x * sigmoid_of(a * x))
UNARY_GRAD(swish_grad, g * sigmoid_of(a * x) * (A(1.) + a * x * (A(1.) - sigmoid_of(a * x))))
UNARY(gelu_erf, x * cdf_of(x))
UNARY_GRAD(gelu_erf_grad, g * (cdf_of(x) + x * pdf_of(x)))
UNARY(gelu_tanh, x * tanh_cdf_of(x))
UNARY_GRAD(gelu_tanh_grad, g * (tanh_cdf_of(x) + A(2.) * x * (tanh_cdf_of(x) - tanh_cdf_of(x) * tanh_cdf_of(x)) *
                                A(0.79788456080286535588) * (A(1.) + A(3 * 0.044715) * x * x)))
// a: threshold
UNARY(mish, x * tanh(x > a ? x : softplus_of(x)))
// a: beta, b: threshold
UNARY(softplus, a * x > b ? x : softplus_of(a * x) / a)
UNARY_GRAD(softplus_grad, a * x > b ? g : g * sigmoid_of(a * x))
// a: alpha
UNARY(leaky_relu, x > A(0.) ? x : a * x)
UNARY_GRAD(leaky_relu_grad, x > A(0.) ? g : a * g)
UNARY(elu, x >= A(0.) ? x : a * expm1(x))
// a: slope, b: offset
UNARY(hard_sigmoid, between(a * x + b, A(0.), A(1.)))
// a: threshold, b: scale, c: offset
UNARY(hard_swish, x * between(x + c, A(0.), a) / b)
UNARY_GRAD(hard_swish_grad, g * (x + c < a ? (x + c > A(0.) ? x + x + c : A(0.)) : a) / b)

// The activations of op cuda_bias_act, in its order.
__device__ A activation_of(A x, int kind, A a, A b, A c) {
    switch (kind) {
        case 0: return x > A(0.) ? x : A(0.);
        case 1: return sigmoid_of(x);
        case 2: return tanh(x);
        case 3: return x * sigmoid_of(x);
        case 4: return between(x, A(0.), a);
        case 5: return x > A(0.) ? x : a * x;
        case 6: return x * sigmoid_of(a * x);
        case 7: return between(a * x + b, A(0.), A(1.));
        default: return x * between(x + c, A(0.), a) / b;
    }
}

// out = act(x + bias), one number of bias for `inner` elements in a row.
extern "C" __global__ void bias_act(
    const T* x, const T* bias, T* out, i64 n, i64 inner, i64 channels, int kind, double a, double b, double c) {
    FOR_EACH(i, n) out[i] = T(activation_of(A(x[i]) + A(bias[i / inner % channels]), kind, A(a), A(b), A(c)));
}
