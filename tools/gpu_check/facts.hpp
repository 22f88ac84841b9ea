#pragma once

// What documentation leaves open and only a driver with a GPU can tell. Most answers decide
// nothing: where one is not the expected one, docs/results shows it. On a few Weir counts: see
// `otherwise`.

#include <string>
#include <vector>

namespace weir::gpu_check {

struct Fact {
  std::string fact;
  std::string expected;  ///< may be `7 or 8`; in parentheses where nothing is
  std::string
      otherwise;  ///< what may happen where the answer is another; empty: Weir holds either way
  std::string answer;     ///< or why there is none
  bool answered = false;  ///< whether the driver could be asked
};

struct Facts {
  std::vector<Fact> facts;
  std::string why;  ///< why there are none: no driver, no GPU
};

/// Asks the driver, on the first device. Does not throw for want of a GPU.
[[nodiscard]] Facts ask_facts();

}  // namespace weir::gpu_check
