#pragma once

// The simulated functions of the driver, as cuGetProcAddress knows them.

#include <span>
#include <string_view>

namespace weir::standin {

struct Entry {
  std::string_view name;  ///< the base name
  int since = 0;          ///< the first version of CUDA that has this form
  void* function = nullptr;
  void* per_thread = nullptr;  ///< the variant for per-thread default streams, or null
  int per_thread_since = 0;    ///< the first version that has that, at least 7.0
};

std::span<const Entry> entries();

}  // namespace weir::standin
