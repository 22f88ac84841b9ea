#include "tools/gpu_check/info.hpp"

#include "allocator/version.hpp"
#include "commit.hpp"

namespace weir::gpu_check {

using nlohmann::json;

std::string cuda_version(int number) {
  if (number == 0) return "";
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

json info_json(const GpuInfo& info) {
  json gpus = json::array();
  for (const GpuDevice& gpu : info.gpus) {
    gpus.push_back({{"name", gpu.name},
                    {"compute_capability", gpu.compute_capability},
                    {"memory_bytes", gpu.memory.count},
                    {"multiprocessors", gpu.multiprocessors}});
  }
  return {{"weir", kVersion},        {"commit", kCommit},
          {"driver", info.driver},   {"driver_cuda", info.driver_cuda},
          {"runtime", info.runtime}, {"toolkit", info.toolkit},
          {"gpus", std::move(gpus)}};
}

std::string format_info(const GpuInfo& info) {
  std::string text;
  for (const GpuDevice& gpu : info.gpus) {
    text += gpu.name + ", " + format_bytes(gpu.memory) + ", compute capability " +
            gpu.compute_capability + ", " + std::to_string(gpu.multiprocessors) +
            " multiprocessors\n";
  }
  return text + "driver " + (info.driver.empty() ? "of unknown version" : info.driver) +
         " for CUDA " + info.driver_cuda + ", CUDA runtime " + info.runtime +
         ", built with toolkit " + info.toolkit + "\nWeir " + std::string(kVersion) + ", commit " +
         kCommit + "\n";
}

}  // namespace weir::gpu_check
