#pragma once

// What libFuzzer's targets share. Each defines `fuzz`, and is one unit with the sources it tests.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace weir::testing {

/// Reads `bytes`, and ends the program where what must hold does not.
void fuzz(std::string_view bytes);

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Takes the first bytes as `head`. Returns false if there are no more.
template <typename Head>
[[nodiscard]] bool take_head(std::string_view& bytes, Head& head) {
  if (bytes.size() <= sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  return true;
}
/// Fills `target` with the bytes, again and again: it is larger than what a fuzzer makes.
template <typename Target>
void fill_with(std::string_view bytes, Target& target) {
  auto* const to = reinterpret_cast<char*>(&target);
  for (std::size_t i = 0; i < sizeof target; ++i) to[i] = bytes[i % bytes.size()];
}

}  // namespace weir::testing

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::testing::fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
