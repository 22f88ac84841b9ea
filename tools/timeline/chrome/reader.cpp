#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "allocator/base/error.hpp"
#include "tools/timeline/chrome/chrome.hpp"
#include "tools/timeline/chrome/event.hpp"
#include "tools/timeline/chrome/foreign.hpp"
#include "tools/timeline/chrome/process_builder.hpp"
#include "tools/timeline/chrome/text.hpp"
#include "tools/timeline/model/tracks.hpp"

namespace weir::timeline::chrome {
namespace {

/// Sets `field` from a number; keeps it if the event has none. Returns false for an invalid number.
template <typename Field>
bool read(const Event& event, Key key, Field& field) {
  if (!event.has(key)) return true;
  const auto number = event.number(key, std::numeric_limits<Field>::max());
  if (!number) return false;
  field = static_cast<Field>(*number);
  return true;
}

/// What an event means.
enum class Meaning : std::uint8_t {
  kRecord,
  kPicture,  ///< for viewers only; a record has the same data
  kUnknown,
};

Meaning meaning_of(std::string_view phase, std::string_view category, TimelineKind& kind) {
  if (phase == "b" || phase == "e") {
    const bool begins = phase == "b";
    if (category == kOpen) {
      kind = TimelineKind::kAdmit;
      return begins ? Meaning::kRecord : Meaning::kPicture;
    }
    if (category != kInFlight) return Meaning::kUnknown;
    kind = begins ? TimelineKind::kClose : TimelineKind::kSettle;
    return Meaning::kRecord;
  }
  if (phase == "C" || phase == "s" || phase == "f") return Meaning::kPicture;
  if (phase != "X" && phase != "i") return Meaning::kUnknown;
  if (category == kRecording) return Meaning::kPicture;
  const auto known = kind_of(category);
  if (!known) return Meaning::kUnknown;
  kind = *known;
  return Meaning::kRecord;
}

bool read_detail(const Event& event, TimelineRecord& record) {
  if (!event.is_text("args.detail")) return read(event, "args.detail", record.detail);
  const std::span<const std::string_view> words = detail_words(record.kind);
  const auto found = std::ranges::find(words, event.text("args.detail"));
  if (found == words.end()) return false;
  record.detail = static_cast<std::uint8_t>(found - words.begin());
  return true;
}

/// Returns a record's name: the drawn text, unless that marks a record without a name.
std::string_view name_of(const Event& event, std::string_view unnamed) {
  if (event.is_text("args.name")) return event.text("args.name");
  const std::string_view drawn = event.text("name");
  return drawn == unnamed ? std::string_view() : drawn;
}

bool is_ours(const Event& event) {
  return event.text("ph") == "M" && event.text("name") == kBeginEvent;
}

/// Converts events that our own writer wrote to records.
class RecordTaker {
 public:
  /// `state` must outlive this.
  explicit RecordTaker(ReadState& state) : state_(state) {}

  /// Skips and counts invalid events.
  void take(const Event& event) {
    if (event.text("ph") == "M") {
      if (!take_metadata(event)) ++dropped_;
      return;
    }
    Reading* const process = process_of(event);
    if (process == nullptr || !take_record(event, *process)) ++dropped_;
  }
  /// Returns the timeline, with a note if events were skipped. Throws UsageError if it has no
  /// process.
  [[nodiscard]] Timeline finish() {
    if (processes_.empty()) throw UsageError(state_.path + ": not a timeline: it names no process");
    Timeline timeline;
    for (Reading& process : processes_) {
      if (dropped_ != 0) {
        process.builder.add(
            {.name = process.builder.name(std::to_string(dropped_) +
                                          " malformed events of the file were skipped"),
             .kind = TimelineKind::kNote});
        dropped_ = 0;
      }
      timeline.processes.push_back(process.builder.finish());
    }
    return timeline;
  }

 private:
  /// What all records of a track share.
  struct Track {
    std::uint32_t thread = 0;
    std::uint16_t device = 0;
    std::uint64_t stream = 0;
  };
  struct Reading {
    explicit Reading(ReadState& state) : builder(state) {}
    ProcessBuilder builder;
    std::unordered_map<std::uint32_t, Track> tracks;
  };

  Reading* process_of(const Event& event) {
    const auto pid = event.number("pid", std::numeric_limits<std::uint32_t>::max());
    if (!pid) return nullptr;
    if (last_ != nullptr && *pid == last_pid_) return last_;
    const auto found = by_pid_.find(static_cast<std::uint32_t>(*pid));
    if (found == by_pid_.end()) return nullptr;
    last_pid_ = found->first;
    return last_ = found->second;
  }

  // Each returns whether the event is valid.
  bool take_metadata(const Event& event) {
    const std::string_view name = event.text("name");
    if (name == kBeginEvent) {
      std::uint32_t pid = 0;
      return read(event, "pid", pid) && take_begin(event, pid);
    }
    Reading* const process = process_of(event);
    if (process == nullptr) return false;
    if (name == "thread_name") return take_track(event, *process);
    if (name == kEndEvent) {
      process->builder.complete = event.is_true("args.complete");
      return read(event, "args.lost", process->builder.lost);
    }
    return true;
  }
  bool take_begin(const Event& event, std::uint32_t pid) {
    unsigned version = 0;
    if (!read(event, "args.version", version)) return false;
    if (version != kVersion) {
      throw UsageError(state_.path + ": is of version " + std::to_string(version) +
                       "; this program reads version " + std::to_string(kVersion));
    }
    if (by_pid_.contains(pid)) return false;
    if (processes_.size() == state_.limits.max_processes) {
      throw UsageError(state_.path + ": has too many processes; allowed are " +
                       std::to_string(state_.limits.max_processes));
    }
    Reading& process = processes_.emplace_back(state_);
    by_pid_.emplace(pid, &process);
    ProcessInfo& info = process.builder.info;
    info.program = event.text("args.program");
    info.host = event.text("args.host");
    info.boot = event.text("args.boot");
    if (event.has("args.rank")) info.rank = 0;
    return read(event, "args.pid", info.pid) &&
           (!info.rank || read(event, "args.rank", *info.rank)) &&
           read(event, "args.monotonic_ns", info.monotonic_ns) &&
           read(event, "args.unix_ns", info.unix_ns);
  }
  static bool take_track(const Event& event, Reading& process) {
    std::uint32_t number = 0;
    Track track;
    if (!event.has("tid") || !read(event, "tid", number) ||
        !read(event, "args.thread", track.thread) || !read(event, "args.device", track.device) ||
        !read(event, "args.stream", track.stream)) {
      return false;
    }
    constexpr std::size_t kMostTracks = 1U << 20U;
    if (process.tracks.size() == kMostTracks && !process.tracks.contains(number)) return false;
    process.tracks[number] = track;
    return true;
  }
  static bool take_record(const Event& event, Reading& process) {
    TimelineRecord record;
    const std::string_view phase = event.text("ph");
    switch (meaning_of(phase, event.text("cat"), record.kind)) {
      case Meaning::kPicture:
        return true;
      case Meaning::kUnknown:
        return false;
      case Meaning::kRecord:
        break;
    }
    std::uint32_t number = 0;
    if (!event.has("ts") || !read(event, "tid", number)) return false;
    if (const auto track = process.tracks.find(number); track != process.tracks.end()) {
      record.thread = track->second.thread;
      record.device = track->second.device;
      record.stream = track->second.stream;
    }
    const bool well =
        read(event, "ts", record.begin) && read(event, "args.batch", record.batch) &&
        read(event, "args.id", record.id) && read(event, "args.bytes", record.bytes) &&
        read(event, "args.asked", record.requested) && read(event, "args.stream", record.stream) &&
        read(event, "args.seq", record.sequence) && read(event, "args.alloc", record.allocated) &&
        read(event, "args.await", record.awaiting) && read(event, "args.cached", record.cached) &&
        read(event, "args.source", record.source) && read(event, "args.device", record.device) &&
        read(event, "args.thread", record.thread) && read_detail(event, record);
    if (!well) return false;
    const auto length = event.number("dur");
    if (!length || __builtin_add_overflow(record.begin, *length, &record.end)) return false;
    const bool spans = phase == "b" || phase == "e";
    record.name = process.builder.name(name_of(event, spans ? kUnnamedBatch : event.text("cat")));
    record.site = process.builder.name(event.text("args.site"));
    process.builder.add(record);
    return true;
  }

  ReadState& state_;
  std::deque<Reading> processes_;
  std::unordered_map<std::uint32_t, Reading*> by_pid_;
  std::uint32_t last_pid_ = 0;
  Reading* last_ = nullptr;
  std::uint64_t dropped_ = 0;
};

}  // namespace
}  // namespace weir::timeline::chrome

namespace weir::timeline {

Timeline read_chrome(const std::string& path, const ReadLimits& limits) {
  ReadState state{.path = path, .limits = limits};
  chrome::RecordTaker ours(state);
  chrome::ForeignTaker foreign(state);
  std::optional<bool> is_ours;  // as the first event tells
  const chrome::FileFacts facts =
      chrome::read_events(path, limits, [&](const chrome::Event& event) {
        if (!is_ours) is_ours = chrome::is_ours(event);
        if (*is_ours) {
          ours.take(event);
        } else {
          foreign.take(event);
        }
      });
  if (!is_ours) throw UsageError(path + ": not a timeline: it has no events");
  return *is_ours ? ours.finish() : foreign.finish(facts);
}

}  // namespace weir::timeline

namespace weir::timeline::chrome {

namespace {

/// Returns the index of the first byte at or after `place` that is not white space.
std::size_t skip_space(std::string_view text, std::size_t place) {
  const std::size_t found = text.find_first_not_of(" \t\r\n", place);
  return found == std::string_view::npos ? text.size() : found;
}

}  // namespace

// A Perfetto trace begins with the tag of its first packet, which is a newline. So the byte after
// the bracket decides whether this is JSON.
bool recognises(std::string_view front) {
  const std::size_t bracket = skip_space(front, 0);
  if (bracket == front.size()) return false;
  const std::size_t next = skip_space(front, bracket + 1);
  const char follows = next < front.size() ? front[next] : '}';
  if (front[bracket] == '{') return follows == '"' || follows == '}';
  return front[bracket] == '[' && (follows == '{' || follows == ']' || follows == '}');
}

bool recognises_ours(std::string_view front) {
  return front.starts_with('[') && front.find(kBeginEvent) != std::string_view::npos;
}

}  // namespace weir::timeline::chrome
