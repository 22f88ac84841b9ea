#pragma once

// The kernels for which a program has registered host functions.

#include <string>
#include <vector>

#include "tests/standin/driver/driver.hpp"
#include "tests/standin/standin.hpp"

namespace weir::standin {

/// The target of CUfunction and CUkernel. Never freed: handles of kernels do not end.
struct Kernel {
  std::string name;
  const void* symbol = nullptr;
  void (*run)(const WeirStandinLaunch*) = nullptr;  ///< null: known by name only
  std::vector<std::size_t> sizes;
};

/// The kernel of this name in the device's code; created at first use.
Kernel& kernel_by_name(const std::string& name);
/// Null if no host function is registered for this address.
Kernel* kernel_by_symbol(const void* symbol);

}  // namespace weir::standin
