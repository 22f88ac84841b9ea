// The lifetimes format: one buffer per line, live from its start up to, but not including, its end.

#include <algorithm>
#include <compare>
#include <limits>
#include <string>
#include <unordered_set>

#include "tools/replay/read/readers.hpp"

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
  [[nodiscard]] bool enough() const { return buffer && start && end && size; }
};

/// The start or end of a buffer. Sorted by time. At equal times, ends come first, so that their
/// memory can be reused; otherwise the order is that of the file.
struct LifeEvent {
  std::uint64_t key;   ///< twice its time, plus one for a start
  std::uint32_t line;  ///< index of its lifetime

  [[nodiscard]] bool begins() const noexcept { return (key & 1U) != 0; }
  friend auto operator<=>(const LifeEvent&, const LifeEvent&) = default;
};

struct Lifetime {
  Bytes size;
  std::uint32_t stream = 0;
  std::uint32_t buffer = 0;  ///< its number in the trace, once allocated
};

std::uint64_t time_in(std::string_view text, std::string_view what) {
  const std::uint64_t time = number_in(text, what);
  if (time >> 63U == 0) return time;
  throw Malformed(std::string(what) + " is " + std::to_string(time) + ": below 2^63 is expected");
}

class LifetimeReader {
 public:
  explicit LifetimeReader(const Csv& csv) : columns_(csv) {
    constexpr std::size_t kShortLine = 16;
    const std::size_t lines = csv.size() / kShortLine;
    known_.reserve(lines);
    lifetimes_.reserve(lines);
    events_.reserve(2 * lines);
  }

  void take(const std::vector<std::string_view>& fields) {
    const std::uint64_t start = time_in(fields[*columns_.start], "the start");
    const std::uint64_t end = time_in(fields[*columns_.end], "the end");
    const Bytes size{number_in(fields[*columns_.size], "the size")};
    const std::uint64_t stream =
        columns_.stream ? number_in(fields[*columns_.stream], "the stream") : 0;
    TraceBuilder::check_size(size);
    if (end <= start) {
      throw Malformed("the end, " + std::to_string(end) + ", is not after the start, " +
                      std::to_string(start));
    }
    check_new(fields[*columns_.buffer]);
    add_to_all(size);
    const auto line = static_cast<std::uint32_t>(lifetimes_.size());
    lifetimes_.push_back({.size = size, .stream = streams_.of(stream)});
    events_.push_back({.key = 2 * start + 1, .line = line});
    events_.push_back({.key = 2 * end, .line = line});
  }

  [[nodiscard]] Trace finish(const std::string& name) {
    std::ranges::sort(events_);
    TraceBuilder builder(name);
    builder.expect(events_.size());
    for (const LifeEvent& event : events_) {
      Lifetime& lifetime = lifetimes_[event.line];
      if (event.begins()) {
        lifetime.buffer = builder.allocate(lifetime.size, lifetime.stream);
      } else {
        builder.free(lifetime.buffer, lifetime.stream);
      }
    }
    return builder.finish();
  }

 private:
  void check_new(std::string_view buffer) {
    if (known_.insert(buffer).second) return;
    throw Malformed("buffer " + shown_text(buffer) + " is already on an earlier line");
  }
  /// Refuses here what the builder would refuse later, while the line number is known.
  void add_to_all(Bytes size) {
    if (size > TraceBuilder::kMostInAll - in_all_) {
      throw Malformed("all buffers together are more than " +
                      format_bytes(TraceBuilder::kMostInAll));
    }
    if (lifetimes_.size() == std::numeric_limits<std::uint32_t>::max()) {
      throw Malformed("more than 2^32 - 1 buffers");
    }
    in_all_ += size;
  }

  const LifetimeColumns columns_;
  StreamNumbers streams_;
  std::unordered_set<std::string_view> known_;
  std::vector<Lifetime> lifetimes_;
  std::vector<LifeEvent> events_;
  Bytes in_all_;
};

}  // namespace

bool is_lifetimes(const Csv& csv) { return LifetimeColumns(csv).enough(); }

Trace read_lifetimes(const std::string& name, Csv& csv) {
  LifetimeReader reader(csv);
  csv.for_each([&](const std::vector<std::string_view>& fields) { reader.take(fields); });
  Trace trace = reader.finish(name);
  trace.cut = csv.cut();
  return trace;
}

}  // namespace weir::replay
