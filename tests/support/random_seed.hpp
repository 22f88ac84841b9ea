#pragma once

// The seed of the random tests. WEIR_TEST_SEED replays a run; write
// SCOPED_TRACE(seed_message(seed)) so that a failure shows its seed.

#include <cstdint>
#include <cstdlib>
#include <string>

namespace weir::testing {

[[nodiscard]] inline std::uint64_t random_seed() {
  constexpr std::uint64_t kDefault = 20240607;
  const char* text = std::getenv("WEIR_TEST_SEED");
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : kDefault;
}

[[nodiscard]] inline std::string seed_message(std::uint64_t seed) {
  return "replay with WEIR_TEST_SEED=" + std::to_string(seed);
}

}  // namespace weir::testing
