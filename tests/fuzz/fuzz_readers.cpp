// libFuzzer's target: the readers of traces. To run it for longer than the tests do, and to keep
// what reaches code that no other input reaches:
//
//   mkdir found
//   build/dev/tests/fuzz/fuzz_readers found build/dev/tests/fuzz/corpus/readers
//   tests/fuzz/merge readers found

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "read_bytes.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)weir::testing::read_bytes({reinterpret_cast<const char*>(data), size});
  return 0;
}
