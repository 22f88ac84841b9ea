#include "tools/timeline/perfetto/recognise.hpp"

#include <cstdint>

#include "tools/timeline/perfetto/fields.hpp"
#include "tools/timeline/perfetto/wire.hpp"

namespace weir::timeline::perfetto {

bool recognises(std::string_view front) {
  return front.starts_with('\n');  // the tag of the first packet
}

bool recognises_ours(std::string_view front) {
  constexpr auto kMessage = static_cast<std::uint64_t>(wire::Type::kBytes);
  if (wire::take_varint(front) != (std::uint64_t{kTracePacket} << 3U | kMessage)) return false;
  (void)wire::take_varint(front);  // the packet's length
  return wire::take_varint(front) == (std::uint64_t{packet::kOurProcess} << 3U | kMessage);
}

}  // namespace weir::timeline::perfetto
