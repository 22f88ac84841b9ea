#include "tools/replay/read/live.hpp"

#include <string>

#include "tools/program/numbers.hpp"

namespace weir::replay {
std::uint32_t StreamNumbers::of(std::uint64_t handle) {
  if (last_number_ && last_ == handle) return *last_number_;
  const auto number =
      numbers_.try_emplace(handle, static_cast<std::uint32_t>(numbers_.size())).first->second;
  last_ = handle;
  last_number_ = number;
  return number;
}

std::uint32_t LiveAddresses::live_at(std::uint64_t address, const char* what) const {
  const auto found = live_.find(address);
  if (found == live_.end()) {
    throw Malformed(std::string(what) + " of " + format_hex(address) + ", where nothing is live");
  }
  return found->second;
}

void LiveAddresses::allocate(std::uint64_t address, Bytes bytes, std::uint64_t stream) {
  TraceBuilder::check_size(bytes);
  if (live_.contains(address)) {
    throw Malformed("an allocation at " + format_hex(address) + ", which is live already");
  }
  live_.emplace(address, builder_.allocate(bytes, streams_.of(stream)));
}

void LiveAddresses::free(std::uint64_t address, std::optional<Bytes> bytes, std::uint64_t stream) {
  const std::uint32_t buffer = live_at(address, "a free");
  const Bytes allocated = builder_.size_of(buffer);
  if (bytes && *bytes != allocated) {
    throw Malformed("a free of " + std::to_string(bytes->count) + " bytes at " +
                    format_hex(address) + ", where " + std::to_string(allocated.count) +
                    " were allocated");
  }
  builder_.free(buffer, streams_.of(stream));
  live_.erase(address);
}

void LiveAddresses::use(std::uint64_t address, std::uint64_t stream) {
  builder_.use(live_at(address, "a use"), streams_.of(stream));
}

}  // namespace weir::replay
