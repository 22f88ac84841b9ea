#include "trainer/model/maths.hpp"

#include "allocator/base/error.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "kernels/sparse/losses.hpp"
#include "scheduler/device/device_kind.hpp"

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

/// What the operations of one kind of device are computed with.
struct MathsOfKind {
  std::unique_ptr<Maths> (*make)(int ordinal);
  Bytes (*workspace)() noexcept;
};

MathsOfKind maths_of(DeviceId device) {
  switch (device.kind) {  // the compiler asks for every kind
    case DeviceKind::kCpu:
      return {.make = [](int /*ordinal*/) { return make_cpu_maths(); },
              .workspace = []() noexcept { return Bytes{}; }};
    case DeviceKind::kCuda:
      return {.make = make_cuda_maths, .workspace = cuda_workspace};
  }
  throw UsageError("a device of an unknown kind has no maths");
}

}  // namespace

std::unique_ptr<Maths> make_cpu_maths() { return std::make_unique<CpuMaths>(); }

std::unique_ptr<Maths> make_maths(const Device& device) {
  const DeviceId id = parse_device_id(device.name());
  return maths_of(id).make(id.ordinal);
}

Bytes workspace_of(std::string_view device) {
  return maths_of(parse_device_id(device)).workspace();
}

}  // namespace weir
