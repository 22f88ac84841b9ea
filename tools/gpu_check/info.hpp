#pragma once

// What machine and what build a run's figures are of.

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
  std::string file;     ///< empty: there is none
  std::string version;  ///< `13.0.2`
  std::string why;      ///< why there is none, and where it was looked for
};

/// `gpus` is what programs may use; empty: `why` is one line with the reason and what to do.
struct GpuInfo {
  std::string driver;       ///< `580.65.06`; empty when it does not tell
  std::string driver_cuda;  ///< the latest CUDA that the driver knows
  std::string runtime;      ///< of the CUDA runtime that is linked in
  std::string toolkit;      ///< that this program was built with
  CublasInfo cublas;
  /// Variables that change what a GPU computes, or how fast, as NAME=VALUE.
  std::vector<std::string> settings;
  bool rehearsal = false;  ///< the driver is the stand-in of docs/standin.md: nothing here is a GPU
  std::vector<GpuDevice> gpus;
  std::string why;
};

/// Asks the driver; takes no device memory. Does not throw for want of a GPU.
[[nodiscard]] GpuInfo find_gpus();

/// Those of `environment`, which is null at its end.
[[nodiscard]] std::vector<std::string> changing_settings(const char* const* environment);

/// With the version and the commit of this program.
[[nodiscard]] nlohmann::json info_json(const GpuInfo& info);
[[nodiscard]] std::string format_info(const GpuInfo& info);

/// `13.0` of the 13000 in which CUDA gives its versions; nothing of 0.
[[nodiscard]] std::string cuda_version(int number);

}  // namespace weir::gpu_check
