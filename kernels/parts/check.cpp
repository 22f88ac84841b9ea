#include "kernels/parts/check.hpp"

#include <cstdint>
#include <string>

#include "allocator/base/error.hpp"

namespace weir {
namespace {

[[noreturn]] void refuse(Operand operand, std::size_t actual, const std::string& expected) {
  throw UsageError(std::string(operand.function) + ": " + operand.name + " has " +
                   std::to_string(actual) + " elements, expected " + expected);
}

}  // namespace

void require_elements(Operand operand, std::size_t actual, std::size_t expected) {
  if (actual != expected) refuse(operand, actual, std::to_string(expected));
}

void require_matrix(Operand operand, std::size_t actual, std::size_t rows, std::size_t columns) {
  const bool fits = columns == 0 || rows <= SIZE_MAX / columns;
  if (fits && actual == rows * columns) return;
  refuse(operand, actual, std::to_string(rows) + " x " + std::to_string(columns));
}

void require_at_most(const char* function, const char* things, std::size_t actual,
                     std::size_t most) {
  if (actual <= most) return;
  throw UsageError(std::string(function) + ": " + std::to_string(actual) + " " + things +
                   ", at most " + std::to_string(most));
}

void require_that(const char* function, bool holds, const char* reason) {
  if (!holds) throw UsageError(std::string(function) + ": " + reason);
}

}  // namespace weir
