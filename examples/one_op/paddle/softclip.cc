// softclip as an operator of Paddle: limit * tanh(x / limit).
#include <cmath>
#include <vector>

#include "paddle/extension.h"

template <typename T>
void forward_loop(const T* x, T* out, int64_t size, float limit) {
  for (int64_t i = 0; i < size; ++i) out[i] = limit * std::tanh(x[i] / limit);
}

template <typename T>
void backward_loop(const T* out, const T* grad, T* x_grad, int64_t size, float limit) {
  for (int64_t i = 0; i < size; ++i) x_grad[i] = grad[i] * (1 - (out[i] / limit) * (out[i] / limit));
}

#ifdef PADDLE_WITH_CUDA
std::vector<paddle::Tensor> softclip_cuda(const paddle::Tensor& x, float limit);
std::vector<paddle::Tensor> softclip_grad_cuda(const paddle::Tensor& out, const paddle::Tensor& grad, float limit);
#endif

std::vector<paddle::Tensor> softclip(const paddle::Tensor& x, float limit) {
  PD_CHECK(limit > 0, "limit is ", limit, "; expected a positive number");
#ifdef PADDLE_WITH_CUDA
  if (x.is_gpu()) return softclip_cuda(x, limit);
#endif
  auto out = paddle::empty_like(x);
  PD_DISPATCH_FLOATING_TYPES(x.type(), "softclip", ([&] {
    forward_loop<data_t>(x.data<data_t>(), out.data<data_t>(), x.size(), limit);
  }));
  return {out};
}

std::vector<paddle::Tensor> softclip_grad(const paddle::Tensor& out, const paddle::Tensor& grad, float limit) {
#ifdef PADDLE_WITH_CUDA
  if (out.is_gpu()) return softclip_grad_cuda(out, grad, limit);
#endif
  auto x_grad = paddle::empty_like(out);
  PD_DISPATCH_FLOATING_TYPES(out.type(), "softclip_grad", ([&] {
    backward_loop<data_t>(out.data<data_t>(), grad.data<data_t>(), x_grad.data<data_t>(), out.size(), limit);
  }));
  return {x_grad};
}

std::vector<std::vector<int64_t>> infer_shape(std::vector<int64_t> x) { return {x}; }
std::vector<paddle::DataType> infer_dtype(paddle::DataType x) { return {x}; }

PD_BUILD_OP(softclip)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"limit: float"})
    .SetKernelFn(PD_KERNEL(softclip))
    .SetInferShapeFn(PD_INFER_SHAPE(infer_shape))
    .SetInferDtypeFn(PD_INFER_DTYPE(infer_dtype));

PD_BUILD_GRAD_OP(softclip)
    .Inputs({"Out", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .Attrs({"limit: float"})
    .SetKernelFn(PD_KERNEL(softclip_grad));
