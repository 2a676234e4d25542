import paddle
from paddle.utils.cpp_extension import CppExtension, CUDAExtension, setup

with_cuda = paddle.is_compiled_with_cuda()
Extension = CUDAExtension if with_cuda else CppExtension
setup(name="softclip_paddle", ext_modules=Extension(sources=["softclip.cc", *(["softclip.cu"] if with_cuda else [])]))
