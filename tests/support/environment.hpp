#pragma once

// An environment made of a map, so that no test changes the process's.

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "allocator/base/setting.hpp"

namespace weir::testing {

[[nodiscard]] inline Environment environment_of(std::map<std::string, std::string> variables) {
  // Shared: what the lookup returns stays valid however often the function object is copied.
  const auto held =
      std::make_shared<const std::map<std::string, std::string>>(std::move(variables));
  return [held](const char* name) -> const char* {
    const auto found = held->find(name);
    return found == held->end() ? nullptr : found->second.c_str();
  };
}

}  // namespace weir::testing
