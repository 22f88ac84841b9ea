// libFuzzer's target: the readers of traces. docs/replay.md says how to run it for longer.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "read_bytes.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)weir::testing::read_bytes({reinterpret_cast<const char*>(data), size});
  return 0;
}
