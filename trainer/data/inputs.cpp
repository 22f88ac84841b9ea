#include "trainer/data/inputs.hpp"

#include "allocator/base/setting.hpp"

namespace weir {

InputKind parse_inputs(std::string_view name, std::string_view text) {
  for (const InputKind kind : {InputKind::kHost, InputKind::kRing, InputKind::kDrawn}) {
    if (text == to_string(kind)) return kind;
  }
  refuse(name, text, "host, ring or drawn");
}

std::string_view to_string(InputKind kind) noexcept {
  switch (kind) {
    case InputKind::kHost:
      return "host";
    case InputKind::kRing:
      return "ring";
    case InputKind::kDrawn:
      return "drawn";
  }
  return "unknown";
}

}  // namespace weir
