#pragma once

// An inside of the library that does nothing but remember what it was asked.

#include <string>
#include <vector>

namespace weir::preload::fake {

struct Answers {
  bool begins = true;     ///< begin_batch
  bool knows = true;      ///< memory_info, settings_text
  bool allocates = true;  ///< allocate_on
};
/// What is answered from now on, by all threads. To be set while one thread runs.
void answer(Answers answers);
/// Where allocate_on's memory is.
[[nodiscard]] void* memory();
/// What was asked since the last call of this, a line for each. In a program that WEIR_FAKE_CALLS
/// names a file to, each line is added to that as well.
[[nodiscard]] std::vector<std::string> take_calls();

}  // namespace weir::preload::fake
