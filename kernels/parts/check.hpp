#pragma once

// Size checks that kernels make before they start.

#include <cstddef>
#include <string_view>

namespace weir {

/// The function and the operand, for the message: "dense_forward" and "bias".
struct Operand {
  std::string_view function;
  std::string_view name;
};

/// Throws UsageError unless `actual` equals `expected`, in elements. Thread-safe.
void require_elements(Operand operand, std::size_t actual, std::size_t expected);

/// The same for a matrix of rows x columns elements. Also throws if the product exceeds size_t.
void require_matrix(Operand operand, std::size_t actual, std::size_t rows, std::size_t columns);

}  // namespace weir
