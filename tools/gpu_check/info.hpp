#pragma once

// The machine and the build of a run's figures.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace weir::gpu_check {

struct GpuDevice {
  std::string name;
  std::string compute_capability;
  Bytes memory;
  int multiprocessors = 0;
};

/// The cuBLAS that matrix products would use.
struct CublasInfo {
  std::string file;     ///< empty if there is none
  std::string version;  ///< `13.0.2`
  std::string why;      ///< why there is none, and where it was searched
};

/// `gpus` lists what programs may use. If empty, `why` is one line with the reason and the remedy.
struct GpuInfo {
  std::string driver;       ///< `580.65.06`; empty if unknown
  std::string driver_cuda;  ///< the latest CUDA version that the driver supports
  std::string runtime;      ///< of the linked CUDA runtime
  std::string toolkit;      ///< of this program's build
  CublasInfo cublas;
  /// Variables that change a GPU's results or speed, as NAME=VALUE.
  std::vector<std::string> settings;
  bool rehearsal = false;  ///< the driver is the stand-in of docs/standin.md, not a GPU
  std::vector<GpuDevice> gpus;
  std::string why;
};

/// Asks the driver. Takes no device memory. Does not throw if there is no GPU.
[[nodiscard]] GpuInfo find_gpus();

/// Returns those of `environment`, which ends with null.
[[nodiscard]] std::vector<std::string> changing_settings(const char* const* environment);

/// Formats as JSON, with this program's version and commit.
[[nodiscard]] nlohmann::json info_json(const GpuInfo& info);
[[nodiscard]] std::string format_info(const GpuInfo& info);

/// Formats CUDA's version number: 13000 as `13.0`. Returns an empty text for 0.
[[nodiscard]] std::string cuda_version(int number);

}  // namespace weir::gpu_check
