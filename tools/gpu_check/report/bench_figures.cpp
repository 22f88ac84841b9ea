#include "tools/gpu_check/report/bench_figures.hpp"

#include "allocator/base/error.hpp"

namespace weir::gpu_check {

std::vector<KernelFigures> read_bench(const nlohmann::json& figures) {
  std::vector<KernelFigures> kernels;
  for (const nlohmann::json& kernel : figures.at("kernels")) {
    KernelFigures read;
    read.name = kernel.at("name");
    read.shape = kernel.at("shape");
    read.floor_of = kernel.at("floor_of");
    read.median_us = kernel.at("median_us");
    read.floor_us = kernel.at("floor_us");
    if (!(read.median_us > 0) || !(read.floor_us > 0)) {
      throw Error("the figures of " + read.name + " are no times");
    }
    kernels.push_back(std::move(read));
  }
  return kernels;
}

}  // namespace weir::gpu_check
