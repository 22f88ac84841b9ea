#pragma once

// Small traces, written and made.

#include <string>
#include <string_view>
#include <vector>

#include "tools/replay/read/readers.hpp"

namespace weir::testing {

/// The one trace in `text`, read as a file named `t`.
[[nodiscard]] inline replay::Trace trace_in(std::string_view text) {
  std::vector<replay::Trace> traces =
      replay::read_traces(replay::Source{.name = "t", .bytes = std::string(text), .cut = {}});
  return traces.size() == 1 ? std::move(traces.front()) : replay::Trace{};
}

/// An operation without naming its members.
[[nodiscard]] constexpr replay::Operation allocate(std::uint32_t buffer, std::uint64_t bytes,
                                                   std::uint32_t stream = 0) {
  return {
      .bytes = {bytes}, .buffer = buffer, .stream = stream, .action = replay::Action::kAllocate};
}
[[nodiscard]] constexpr replay::Operation release(std::uint32_t buffer, std::uint64_t bytes,
                                                  std::uint32_t stream = 0) {
  return {.bytes = {bytes}, .buffer = buffer, .stream = stream, .action = replay::Action::kFree};
}
[[nodiscard]] constexpr replay::Operation use(std::uint32_t buffer, std::uint64_t bytes,
                                              std::uint32_t stream) {
  return {.bytes = {bytes}, .buffer = buffer, .stream = stream, .action = replay::Action::kUse};
}

/// Of these operations, which name at most `buffers` buffers and four streams.
[[nodiscard]] inline replay::Trace trace_of(std::vector<replay::Operation> operations,
                                            std::uint32_t buffers) {
  return {.name = "t",
          .operations = std::move(operations),
          .buffers = buffers,
          .streams = 4,
          .cut = {},
          .notes = {}};
}

}  // namespace weir::testing
