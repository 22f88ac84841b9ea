#pragma once

// What documentation leaves open and only a driver with a GPU can tell. Most answers decide
// nothing: where one is not the expected one, docs/results shows it. On a few Weir counts: see
// `otherwise`.

#include <functional>
#include <string>

namespace weir::gpu_check {

struct Fact {
  std::string fact;
  std::string expected;  ///< may be `7 or 8`; in parentheses where nothing is
  std::string
      otherwise;  ///< what may happen where the answer is another; empty: Weir holds either way
  std::string answer;     ///< or why there is none
  bool answered = false;  ///< whether the driver could be asked
};

/// What is told of each question. A driver may crash or hang in any of them.
struct FactsTold {
  std::function<void(const Fact&)> asked;     ///< before it is asked; it has no answer
  std::function<void(const Fact&)> answered;  ///< or why it has no answer
};

/// Asks the driver, on the first device. Returns why nothing was asked: no driver, no GPU; empty
/// where all was. Does not throw for want of a GPU.
[[nodiscard]] std::string ask_facts(const FactsTold& told);

}  // namespace weir::gpu_check
