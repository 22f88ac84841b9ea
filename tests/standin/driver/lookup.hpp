#pragma once

// The functions of the driver, as its header declares them and as cuGetProcAddress knows them.

#include <span>
#include <string_view>

namespace weir::standin {

struct Function {
  std::string_view name;
  void* address = nullptr;
};
/// Every exported function, simulated or not.
std::span<const Function> functions();

/// From the version `since` on, a look-up of `base` returns `function`.
struct Form {
  std::string_view base;
  int since = 0;
  bool per_thread = false;  ///< only for programs with per-thread default streams
  bool simulated = false;
  void* function = nullptr;
};
/// The newest first. A form for per-thread default streams follows the other form of its version.
std::span<const Form> forms();

}  // namespace weir::standin
