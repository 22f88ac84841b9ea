#include "allocator/index/block.hpp"

#include <algorithm>

namespace weir {

void Block::set_label(std::string_view text) noexcept {
  label = {};
  std::ranges::copy(text.substr(0, kLabel), label.begin());
}

std::string_view Block::label_view() const noexcept {
  return {label.begin(), std::ranges::find(label, '\0')};
}

}  // namespace weir
