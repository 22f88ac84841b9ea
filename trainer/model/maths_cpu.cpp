#include "kernels/dense.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/random.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/precision/precision.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "kernels/sparse/losses.hpp"
#include "trainer/model/maths.hpp"

namespace weir {
namespace {

class CpuMaths final : public Maths {
 public:
  [[nodiscard]] Bytes workspace() const noexcept override { return {}; }

  void fill_normal(Stream& /*stream*/, NormalDraw draw, Out out) override {
    weir::fill_normal(draw.seed, draw.sequence, out, draw.first);
    if (draw.deviation != 1) weir::scale(draw.deviation, out);
  }

#define MATHS(name, parameters, arguments) \
  void name(Stream&, MATHS_LIST parameters) override { weir::name arguments; }
#define MATHS_SCRATCH(name, parameters, arguments) \
  void name(Stream&, MATHS_LIST parameters, Out) override { weir::name arguments; }
#define MATHS_BLAS MATHS_SCRATCH
#include "trainer/model/maths.inc"
};

}  // namespace

std::unique_ptr<Maths> make_cpu_maths() { return std::make_unique<CpuMaths>(); }

}  // namespace weir
