#include "tools/replay/read/trace.hpp"

#include <algorithm>
#include <limits>
#include <utility>

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

}  // namespace weir::replay
