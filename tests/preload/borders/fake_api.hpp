#pragma once

// An inside of the library that only records its calls.

#include <string>
#include <vector>

namespace weir::preload::fake {

struct Answers {
  bool begins = true;     ///< begin_batch
  bool knows = true;      ///< memory_info, settings_text
  bool allocates = true;  ///< allocate_on
};
/// The result from now on, for all threads. Set it while one thread runs.
void answer(Answers answers);
/// The memory of allocate_on.
[[nodiscard]] void* memory();
/// The calls since the last call of this, a line for each. If WEIR_FAKE_CALLS names a file, each
/// line is also added to it.
[[nodiscard]] std::vector<std::string> take_calls();

}  // namespace weir::preload::fake
