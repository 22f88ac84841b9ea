#include "kernels/parts/check.hpp"

#include <cstdint>
#include <string>

#include "allocator/base/error.hpp"

namespace weir {
namespace {

[[noreturn]] void refuse(Operand operand, std::size_t actual, const std::string& expected) {
  throw UsageError(std::string(operand.function) + ": " + std::string(operand.name) + " has " +
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

}  // namespace weir
