#include "tools/gpu_check/report/bench_figures.hpp"

#include "allocator/error.hpp"

namespace weir::gpu_check {

std::vector<KernelFigures> read_bench(const nlohmann::json& figures) {
  std::vector<KernelFigures> kernels;
  for (const nlohmann::json& kernel : figures.at("kernels")) {
    KernelFigures read;
    read.name = kernel.at("name");
    read.time_us = kernel.at("time_us");
    read.floor_us = kernel.at("floor_us");
    if (kernel.contains("most")) read.most = kernel.at("most").get<double>();
    if (!(read.time_us > 0) || !(read.floor_us > 0)) {
      throw Error("the figures of " + read.name + " are no times");
    }
    kernels.push_back(std::move(read));
  }
  return kernels;
}

}  // namespace weir::gpu_check
