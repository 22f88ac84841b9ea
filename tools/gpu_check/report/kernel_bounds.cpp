#include "tools/gpu_check/report/kernel_bounds.hpp"

#include <algorithm>
#include <utility>

#include "tools/gpu_check/report/text.hpp"

namespace weir::gpu_check {
namespace {

bool is_of(const NamedBound& bound, const KernelFigures& kernel) {
  return kernel.name == bound.kernel && kernel.shape == bound.shape;
}

}  // namespace

JudgedKernel judge_kernel(KernelFigures kernel) {
  JudgedKernel judged;
  judged.kernel = std::move(kernel);
  const KernelFigures& of = judged.kernel;
  const auto* const named =
      std::ranges::find_if(kNamedBounds, [&](const NamedBound& bound) { return is_of(bound, of); });
  if (named != kNamedBounds.end()) {
    judged.most = named->most;
    judged.reason = named->reason;
  } else if (of.floor_us < kLeastFloorUs) {
    judged.reason = "a floor of " + number(of.floor_us, 1) + " us is mostly its launch";
  } else if (of.floor_of == "copy") {
    judged.most = kMemoryBound;
  } else if (of.floor_of == "sgemm") {
    judged.most = kProductBound;
  } else {
    judged.reason = "no bound for a floor of " + of.floor_of;
  }
  return judged;
}

std::vector<std::string> bounds_without_kernel(const std::vector<KernelFigures>& kernels) {
  std::vector<std::string> missing;
  for (const NamedBound& bound : kNamedBounds) {
    const bool timed = std::ranges::any_of(
        kernels, [&](const KernelFigures& kernel) { return is_of(bound, kernel); });
    if (!timed) missing.push_back(std::string(bound.kernel) + " " + bound.shape);
  }
  return missing;
}

}  // namespace weir::gpu_check
