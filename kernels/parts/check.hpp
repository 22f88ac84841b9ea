#pragma once

// What the kernels check before they start: sizes that do not fit are refused, by name.

#include <cstddef>
#include <string_view>

namespace weir {

/// Where a size is checked, for the message: "dense_forward" and "bias".
struct Operand {
  std::string_view function;
  std::string_view name;
};

/// Throws UsageError unless `actual` equals `expected` (both in elements). Thread-safe.
void require_elements(Operand operand, std::size_t actual, std::size_t expected);

/// The same for a matrix of rows x columns elements. A product over the range of size_t throws too.
void require_matrix(Operand operand, std::size_t actual, std::size_t rows, std::size_t columns);

}  // namespace weir
