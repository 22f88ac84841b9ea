#include "tools/replay/read/trace.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "tools/program/numbers.hpp"

namespace weir::replay {

Bytes peak_requested(const Trace& trace) {
  Bytes live;
  Bytes peak;
  for (const Operation& operation : trace.operations) {
    if (operation.action == Action::kAllocate) live += operation.bytes;
    if (operation.action == Action::kFree) live -= operation.bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

void TraceBuilder::check_size(Bytes bytes) {
  if (bytes.count == 0) throw Malformed("a size of 0 bytes: a buffer has at least one");
  if (bytes > kMostBuffer) {
    throw Malformed("a size of " + std::to_string(bytes.count) + " bytes: at most " +
                    format_bytes(kMostBuffer));
  }
}

void TraceBuilder::expect(std::size_t operations) {
  trace_.operations.reserve(operations);
  sizes_.reserve(operations / 2);
}

std::uint32_t TraceBuilder::allocate(Bytes bytes, std::uint32_t stream) {
  check_size(bytes);
  if (bytes > kMostInAll - in_all_) {
    throw Malformed("all allocations together are more than " + format_bytes(kMostInAll));
  }
  if (sizes_.size() == std::numeric_limits<std::uint32_t>::max()) {
    throw Malformed("more than 2^32 - 1 allocations");
  }
  in_all_ += bytes;
  const auto buffer = static_cast<std::uint32_t>(sizes_.size());
  sizes_.push_back(bytes);
  add(Action::kAllocate, buffer, stream);
  return buffer;
}

void TraceBuilder::free(std::uint32_t buffer, std::uint32_t stream) {
  add(Action::kFree, buffer, stream);
}

void TraceBuilder::use(std::uint32_t buffer, std::uint32_t stream) {
  add(Action::kUse, buffer, stream);
}

void TraceBuilder::add(Action action, std::uint32_t buffer, std::uint32_t stream) {
  trace_.operations.push_back(
      {.bytes = sizes_[buffer], .buffer = buffer, .stream = stream, .action = action});
  trace_.streams = std::max(trace_.streams, stream + 1);
}

Trace TraceBuilder::finish() {
  trace_.buffers = static_cast<std::uint32_t>(sizes_.size());
  return std::move(trace_);
}

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
