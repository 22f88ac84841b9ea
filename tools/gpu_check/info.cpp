#include "tools/gpu_check/info.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "allocator/base/version.hpp"
#include "commit.hpp"

namespace weir::gpu_check {

using nlohmann::json;

std::string cuda_version(int number) {
  if (number == 0) return "";
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::vector<std::string> changing_settings(const char* const* environment) {
  // tools/gpu_check/shell/machine.sh unsets these for measurements.
  constexpr std::array<std::string_view, 3> kNames{
      "CUBLAS_", "NVIDIA_TF32_OVERRIDE=", "CUDA_LAUNCH_BLOCKING="};
  std::vector<std::string> found;
  for (; *environment != nullptr; ++environment) {
    const std::string_view setting = *environment;
    const auto starts = [&](std::string_view name) { return setting.starts_with(name); };
    if (std::any_of(kNames.begin(), kNames.end(), starts)) found.emplace_back(setting);
  }
  std::sort(found.begin(), found.end());
  return found;
}

namespace {

std::string describe(const CublasInfo& cublas) {
  if (cublas.file.empty()) return "no cuBLAS: " + cublas.why;
  return "cuBLAS " + cublas.version + " in " + cublas.file;
}

/// As settings_json, of `NAME=VALUE`.
json settings_json(const std::vector<std::string>& settings) {
  json all = json::object();
  for (const std::string& setting : settings) {
    const std::size_t sign = setting.find('=');
    all[setting.substr(0, sign)] = {{"value", setting.substr(sign + 1)}, {"source", "environment"}};
  }
  return all;
}

}  // namespace

json info_json(const GpuInfo& info) {
  json gpus = json::array();
  for (const GpuDevice& gpu : info.gpus) {
    gpus.push_back({{"name", gpu.name},
                    {"compute_capability", gpu.compute_capability},
                    {"memory_bytes", gpu.memory.count},
                    {"multiprocessors", gpu.multiprocessors}});
  }
  return {{"weir", kVersion},
          {"commit", kCommit},
          {"driver", info.driver},
          {"driver_cuda", info.driver_cuda},
          {"runtime", info.runtime},
          {"toolkit", info.toolkit},
          {"cublas", describe(info.cublas)},
          {"settings", settings_json(info.settings)},
          {"rehearsal", info.rehearsal},
          {"gpus", std::move(gpus)}};
}

std::string format_info(const GpuInfo& info) {
  std::string text = info.rehearsal ? "a rehearsal: the driver is the stand-in\n" : "";
  for (const GpuDevice& gpu : info.gpus) {
    text += gpu.name + ", " + format_bytes(gpu.memory) + ", compute capability " +
            gpu.compute_capability + ", " + std::to_string(gpu.multiprocessors) +
            " multiprocessors\n";
  }
  text += "driver " + (info.driver.empty() ? "of unknown version" : info.driver) + " for CUDA " +
          info.driver_cuda + ", CUDA runtime " + info.runtime + ", built with toolkit " +
          info.toolkit + "\n" + describe(info.cublas) + "\n";
  for (const std::string& setting : info.settings) {
    text += "set here, ignored by our own tests: " + setting + "\n";
  }
  return text + "Weir " + std::string(kVersion) + ", commit " + kCommit + "\n";
}

}  // namespace weir::gpu_check
