// softclip and its gradient for NVIDIA GPUs.
#include <vector>

#include "paddle/extension.h"

template <typename T>
__global__ void forward(const T* x, T* out, int64_t size, float limit) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) out[i] = limit * tanh(x[i] / limit);
}

template <typename T>
__global__ void backward(const T* out, const T* grad, T* x_grad, int64_t size, float limit) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) x_grad[i] = grad[i] * (1 - (out[i] / limit) * (out[i] / limit));
}

std::vector<paddle::Tensor> softclip_cuda(const paddle::Tensor& x, float limit) {
  auto out = paddle::empty_like(x);
  PD_DISPATCH_FLOATING_TYPES(x.type(), "softclip_cuda", ([&] {
    forward<data_t><<<(x.size() + 255) / 256, 256, 0, x.stream()>>>(
        x.data<data_t>(), out.data<data_t>(), x.size(), limit);
  }));
  return {out};
}

std::vector<paddle::Tensor> softclip_grad_cuda(const paddle::Tensor& out, const paddle::Tensor& grad, float limit) {
  auto x_grad = paddle::empty_like(out);
  PD_DISPATCH_FLOATING_TYPES(out.type(), "softclip_grad_cuda", ([&] {
    backward<data_t><<<(out.size() + 255) / 256, 256, 0, out.stream()>>>(
        out.data<data_t>(), grad.data<data_t>(), x_grad.data<data_t>(), out.size(), limit);
  }));
  return {x_grad};
}
