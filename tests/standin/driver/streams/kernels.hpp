#pragma once

// The kernels that a program registered host functions for.

#include <string>
#include <vector>

#include "tests/standin/driver/driver.hpp"
#include "tests/standin/standin.hpp"

namespace weir::standin {

/// What CUfunction and CUkernel point at. Never freed: handles of kernels have no end.
struct Kernel {
  std::string name;
  const void* symbol = nullptr;
  void (*run)(const WeirStandinLaunch*) = nullptr;  ///< null: known by name only
  std::vector<std::size_t> sizes;
};

/// The kernel of this name in the device's code; made when it is new.
Kernel& kernel_by_name(const std::string& name);
/// Null when no host function is registered for this address.
Kernel* kernel_by_symbol(const void* symbol);

}  // namespace weir::standin
