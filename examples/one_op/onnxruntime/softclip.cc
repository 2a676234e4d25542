// softclip for ONNX Runtime: limit * tanh(x / limit), for float32 on the CPU; and its library's entry point.
#include <cmath>

#define ORT_API_MANUAL_INIT
#include "onnxruntime_cxx_api.h"
#include "onnxruntime_lite_custom_op.h"
#undef ORT_API_MANUAL_INIT

struct Softclip {
  Softclip(const OrtApi* api, const OrtKernelInfo* info) {
    Ort::ThrowOnError(api->KernelInfoGetAttribute_float(info, "limit", &limit));
    if (!(limit > 0)) ORT_CXX_API_THROW("limit has to be positive", ORT_INVALID_ARGUMENT);
  }

  Ort::Status Compute(const Ort::Custom::Tensor<float>& x, Ort::Custom::Tensor<float>& out) {
    const float* in = x.Data();
    float* to = out.Allocate(x.Shape());
    for (int64_t i = 0; i < x.NumberOfElement(); ++i) to[i] = limit * std::tanh(in[i] / limit);
    return Ort::Status{nullptr};
  }

  static Ort::Status InferOutputShape(Ort::ShapeInferContext& ctx) {
    ctx.SetOutputShape(0, ctx.GetInputShape(0), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
    return Ort::Status{nullptr};
  }

  float limit;
};

extern "C" OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  Ort::InitApi(base->GetApi(ORT_API_VERSION));
  static Ort::CustomOpDomain domain{"smooth"};
  static std::unique_ptr<Ort::Custom::OrtLiteCustomOp> op{
      Ort::Custom::CreateLiteCustomOp<Softclip>("Softclip", "CPUExecutionProvider")};
  domain.Add(op.get());
  Ort::UnownedSessionOptions{options}.Add(domain);
  return nullptr;
}
