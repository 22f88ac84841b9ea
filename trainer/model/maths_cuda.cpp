// The maths of a GPU: our own kernels, and cuBLAS for products.

#include <exception>
#include <optional>
#include <string>

#include "allocator/base/error_cuda.hpp"
#include "allocator/base/log.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "kernels/sparse/losses.hpp"
#include "scheduler/device/stream_cuda.hpp"
#include "trainer/model/maths.hpp"

namespace weir {
namespace {

class CudaMaths final : public Maths {
 public:
  explicit CudaMaths(int ordinal) : ordinal_(ordinal) {
    const CudaScope scope(ordinal);
    blas_.emplace();
  }
  ~CudaMaths() override {
    try {
      const CudaScope scope(ordinal_);
      blas_.reset();
    } catch (const std::exception& error) {
      log(LogLevel::kError, std::string("a cuBLAS handle is leaked: ") + error.what());
    }
  }
  CudaMaths(const CudaMaths&) = delete;
  CudaMaths& operator=(const CudaMaths&) = delete;

  [[nodiscard]] Bytes workspace() const noexcept override { return cuda_workspace(); }

  void fill_normal(Stream& stream, NormalDraw draw, Out out) override {
    cuda::fill_normal(cuda_stream(stream), draw.seed, draw.sequence, out, draw.first);
    if (draw.deviation != 1) cuda::scale(cuda_stream(stream), draw.deviation, out);
  }

#define MATHS(name, parameters, arguments)                    \
  void name(Stream& stream, MATHS_LIST parameters) override { \
    cuda::name(cuda_stream(stream), MATHS_LIST arguments);    \
  }
#define MATHS_SCRATCH(name, parameters, arguments)                           \
  void name(Stream& stream, MATHS_LIST parameters, Out workspace) override { \
    cuda::name(cuda_stream(stream), MATHS_LIST arguments, workspace);        \
  }
#define MATHS_BLAS(name, parameters, arguments)                               \
  void name(Stream& stream, MATHS_LIST parameters, Out workspace) override {  \
    cuda::name(*blas_, cuda_stream(stream), MATHS_LIST arguments, workspace); \
  }
#include "trainer/model/maths.inc"

 private:
  /// Created and destroyed with its device current, as cuBLAS requires.
  const int ordinal_;
  std::optional<cuda::CublasHandle> blas_;
};

}  // namespace

std::unique_ptr<Maths> make_cuda_maths(int ordinal) { return std::make_unique<CudaMaths>(ordinal); }

Bytes cuda_workspace() noexcept { return cuda::kWorkspaceBytes; }

}  // namespace weir
