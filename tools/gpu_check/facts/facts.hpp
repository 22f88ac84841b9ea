#pragma once

// Questions that documentation leaves open and only a driver with a GPU can answer. Weir
// depends on most: see `otherwise`. docs/results has what an H100 answered to others.

#include <cstdint>
#include <functional>
#include <string>

#include "allocator/base/bytes.hpp"

namespace weir::gpu_check {

struct Fact {
  std::string fact;
  std::string expected;   ///< may be `7 or 8`; in parentheses if nothing is expected
  std::string otherwise;  ///< what may happen with another answer; empty if Weir works either way
  std::string answer;     ///< or why there is none
  bool answered = false;  ///< whether the driver could be asked
};

/// Callbacks for each question. A driver may crash or hang in any of them.
struct FactsTold {
  std::function<void(const Fact&)> asked;     ///< before the question; the fact has no answer yet
  std::function<void(const Fact&)> answered;  ///< with the answer, or why there is none
};

/// Asks the driver about the first device. Returns why nothing was asked (no driver, no GPU), or an
/// empty text. Does not throw if there is no GPU.
[[nodiscard]] std::string ask_facts(const FactsTold& told);

/// Returns how much of the previously free memory was taken. Negative if others gave back more
/// meanwhile.
[[nodiscard]] inline std::string bytes_taken(std::uint64_t before, std::uint64_t after) {
  return before >= after ? format_bytes({before - after}) : "-" + format_bytes({after - before});
}

}  // namespace weir::gpu_check
