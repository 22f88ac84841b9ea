// Lifetimes: a buffer a line, live from its start up to, and not with, its end.

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <unordered_set>

#include "tools/replay/live.hpp"
#include "tools/replay/readers.hpp"

namespace weir::replay {
namespace {

struct LifetimeColumns {
  std::optional<std::size_t> buffer, start, end, size, stream;

  explicit LifetimeColumns(const Csv& csv)
      : buffer(csv.column({"buffer", "id"})),
        start(csv.column({"start", "lower"})),
        end(csv.column({"end", "upper"})),
        size(csv.column("size")),
        stream(csv.column("stream")) {}
};

struct Lifetime {
  Bytes size;
  std::uint32_t stream;
  std::uint32_t buffer;  ///< its number in the trace, once it is allocated
};

/// A buffer's beginning or end.
struct LifeEvent {
  std::uint64_t time;
  std::uint32_t line;  ///< index of its lifetime
  bool begins;
};

std::string text_of(std::uint64_t time) { return std::to_string(time); }

}  // namespace

bool is_lifetimes(const Csv& csv) {
  const LifetimeColumns columns(csv);
  return columns.buffer && columns.start && columns.end && columns.size;
}

Trace read_lifetimes(const std::string& name, Csv& csv) {
  const LifetimeColumns columns(csv);
  StreamNumbers streams;
  std::unordered_set<std::string_view> known;
  std::vector<Lifetime> lifetimes;
  std::vector<LifeEvent> events;
  Bytes in_all;
  csv.for_each([&](const std::vector<std::string_view>& fields) {
    const std::uint64_t start = number_in(fields[*columns.start], "the start");
    const std::uint64_t end = number_in(fields[*columns.end], "the end");
    const Bytes size{number_in(fields[*columns.size], "the size")};
    const std::uint64_t stream =
        columns.stream ? number_in(fields[*columns.stream], "the stream") : 0;
    TraceBuilder::check_size(size);
    if (end <= start) {
      throw Malformed("the end, " + text_of(end) + ", is not after the start, " + text_of(start));
    }
    if (!known.insert(fields[*columns.buffer]).second) {
      throw Malformed("buffer '" + std::string(fields[*columns.buffer]) +
                      "' is on a line above already");
    }
    if (size > TraceBuilder::kMostInAll - in_all) {
      throw Malformed("all buffers together are more than " +
                      format_bytes(TraceBuilder::kMostInAll));
    }
    in_all += size;
    if (lifetimes.size() == std::numeric_limits<std::uint32_t>::max()) {
      throw Malformed("more than 2^32 - 1 buffers");
    }
    const auto line = static_cast<std::uint32_t>(lifetimes.size());
    lifetimes.push_back({.size = size, .stream = streams.of(stream), .buffer = 0});
    events.push_back({.time = start, .line = line, .begins = true});
    events.push_back({.time = end, .line = line, .begins = false});
  });

  // At one time what ends comes first: its memory can be what begins then. Otherwise as in the
  // file.
  std::ranges::sort(events, {},
                    [](const LifeEvent& e) { return std::tuple(e.time, e.begins, e.line); });
  TraceBuilder builder(name);
  for (const LifeEvent& event : events) {
    Lifetime& lifetime = lifetimes[event.line];
    if (event.begins) {
      lifetime.buffer = builder.allocate(lifetime.size, lifetime.stream);
    } else {
      builder.free(lifetime.buffer, lifetime.stream);
    }
  }
  Trace trace = builder.finish();
  trace.cut = csv.cut();
  return trace;
}

}  // namespace weir::replay
