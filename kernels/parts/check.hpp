#pragma once

// Checks that kernels make before they start. Names are literals, and this header needs no
// <string>, which would be most of a short .cu file's compile time.

#include <cstddef>

namespace weir {

/// The function and the operand, for the message: "dense_forward" and "bias".
struct Operand {
  const char* function;
  const char* name;
};

/// Throws UsageError unless `actual` equals `expected`, in elements. Thread-safe.
void require_elements(Operand operand, std::size_t actual, std::size_t expected);

/// The same for a matrix of rows x columns elements. Also throws if the product exceeds size_t.
void require_matrix(Operand operand, std::size_t actual, std::size_t rows, std::size_t columns);

/// Throws UsageError unless `actual` is at most `most` of `things`.
void require_at_most(const char* function, const char* things, std::size_t actual,
                     std::size_t most);

/// Throws UsageError with `reason` if it does not hold.
void require_that(const char* function, bool holds, const char* reason);

}  // namespace weir
