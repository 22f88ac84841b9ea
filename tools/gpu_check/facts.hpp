#pragma once

// What documentation leaves open and only a driver with a GPU can tell. Weir holds either way;
// where an answer is not the expected one, docs/results shows it.

#include <string>
#include <vector>

namespace weir::gpu_check {

struct Fact {
  std::string fact;
  std::string expected;
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
