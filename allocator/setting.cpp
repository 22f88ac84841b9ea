#include "allocator/setting.hpp"

#include <cstdlib>

namespace weir {

Environment process_environment() {
  return [](const char* name) -> const char* { return std::getenv(name); };
}

void refuse(std::string_view name, std::string_view value, std::string_view want) {
  throw UsageError(std::string(name) + "='" + std::string(value) +
                   "' is not allowed: " + std::string(want));
}

}  // namespace weir
