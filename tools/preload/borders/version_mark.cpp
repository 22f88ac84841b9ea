#include "tools/preload/borders/version_mark.hpp"

#include <algorithm>
#include <array>

#include "allocator/base/version.hpp"

namespace weir::preload {
namespace {

constexpr std::array<char, kVersionMark.size() + kVersion.size() + 1> marked() {
  std::array<char, kVersionMark.size() + kVersion.size() + 1> text{};
  std::copy(kVersion.begin(), kVersion.end(),
            std::copy(kVersionMark.begin(), kVersionMark.end(), text.begin()));
  return text;
}

/// Read from the file, and by no code.
[[gnu::used]] constinit const auto kVersionText = marked();

}  // namespace
}  // namespace weir::preload
