#include "tools/timeline/chrome/records.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "tools/timeline/chrome/text.hpp"
#include "tools/timeline/model/tracks.hpp"

namespace weir::timeline {

std::uint32_t ProcessBuilder::name(std::string_view text) {
  if (text.empty()) return 0;
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  std::string kept = valid_utf8(text);
  if (kept != text) return name(kept);
  name_bytes_ += kept.size();
  if (names_.size() > state_.limits.max_names || name_bytes_ > state_.limits.max_name_bytes) {
    throw UsageError(state_.path + ": has too many names; allowed are " +
                     std::to_string(state_.limits.max_names) + " of " +
                     format_bytes(Bytes{state_.limits.max_name_bytes}));
  }
  const auto number = static_cast<std::uint32_t>(names_.size());
  numbers_.emplace(names_.emplace_back(std::move(kept)), number);
  return number;
}

void ProcessBuilder::add(const TimelineRecord& record) {
  if (++state_.records > state_.limits.max_records) {
    throw UsageError(state_.path + ": has too many events; allowed are " +
                     std::to_string(state_.limits.max_records));
  }
  if (pieces_.empty() || pieces_.back().size() == kPiece) pieces_.emplace_back().reserve(kPiece);
  pieces_.back().push_back(record);
  ++size_;
}

Process ProcessBuilder::finish() {
  Process process;
  process.info = std::move(info);
  process.complete = complete;
  process.lost = lost;
  numbers_.clear();
  process.names.assign(std::move_iterator(names_.begin()), std::move_iterator(names_.end()));
  process.records.reserve(size_);
  while (!pieces_.empty()) {
    const std::vector<TimelineRecord>& piece = pieces_.front();
    process.records.insert(process.records.end(), piece.begin(), piece.end());
    pieces_.pop_front();
  }
  if (!std::is_sorted(process.records.begin(), process.records.end(), comes_before)) {
    std::sort(process.records.begin(), process.records.end(), comes_before);
  }
  return process;
}

bool comes_before(const TimelineRecord& a, const TimelineRecord& b) noexcept {
  // Compares all fields, so that the result does not depend on the order in the file.
  const auto key = [](const TimelineRecord& r) {
    return std::tuple(r.begin, r.sequence, ~r.end, r.kind, r.source, r.batch, r.thread, r.device,
                      r.stream, r.id, r.bytes, r.requested, r.detail, r.allocated, r.awaiting,
                      r.cached);
  };
  if (a.begin != b.begin) return a.begin < b.begin;
  return key(a) < key(b);
}

}  // namespace weir::timeline

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
  if (!event.is_text(Key::kDetail)) return read(event, Key::kDetail, record.detail);
  const std::span<const std::string_view> words = detail_words(record.kind);
  const auto found = std::ranges::find(words, event.text(Key::kDetail));
  if (found == words.end()) return false;
  record.detail = static_cast<std::uint8_t>(found - words.begin());
  return true;
}

/// Returns a record's name: the drawn text, unless that marks a record without a name.
std::string_view name_of(const Event& event, std::string_view unnamed) {
  if (event.is_text(Key::kArgName)) return event.text(Key::kArgName);
  const std::string_view drawn = event.text(Key::kName);
  return drawn == unnamed ? std::string_view() : drawn;
}

}  // namespace

bool is_ours(const Event& event) {
  return event.text(Key::kPhase) == "M" && event.text(Key::kName) == kBeginEvent;
}

void RecordTaker::take(const Event& event) {
  if (event.text(Key::kPhase) == "M") {
    if (!take_metadata(event)) ++dropped_;
    return;
  }
  Reading* const process = process_of(event);
  if (process == nullptr || !take_record(event, *process)) ++dropped_;
}

RecordTaker::Reading* RecordTaker::process_of(const Event& event) {
  const auto pid = event.number(Key::kProcess, std::numeric_limits<std::uint32_t>::max());
  if (!pid) return nullptr;
  if (last_ != nullptr && *pid == last_pid_) return last_;
  const auto found = by_pid_.find(static_cast<std::uint32_t>(*pid));
  if (found == by_pid_.end()) return nullptr;
  last_pid_ = found->first;
  return last_ = found->second;
}

bool RecordTaker::take_metadata(const Event& event) {
  const std::string_view name = event.text(Key::kName);
  if (name == kBeginEvent) {
    std::uint32_t pid = 0;
    return read(event, Key::kProcess, pid) && take_begin(event, pid);
  }
  Reading* const process = process_of(event);
  if (process == nullptr) return false;
  if (name == "thread_name") return take_track(event, *process);
  if (name == kEndEvent) {
    process->builder.complete = event.is_true(Key::kComplete);
    return read(event, Key::kLost, process->builder.lost);
  }
  return true;
}

bool RecordTaker::take_begin(const Event& event, std::uint32_t pid) {
  unsigned version = 0;
  if (!read(event, Key::kVersion, version)) return false;
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
  info.program = event.text(Key::kProgram);
  info.host = event.text(Key::kHost);
  info.boot = event.text(Key::kBoot);
  if (event.has(Key::kRank)) info.rank = 0;
  return read(event, Key::kPid, info.pid) && (!info.rank || read(event, Key::kRank, *info.rank)) &&
         read(event, Key::kMonotonic, info.monotonic_ns) && read(event, Key::kUnix, info.unix_ns);
}

bool RecordTaker::take_track(const Event& event, Reading& process) {
  std::uint32_t number = 0;
  Track track;
  if (!event.has(Key::kTrack) || !read(event, Key::kTrack, number) ||
      !read(event, Key::kThread, track.thread) || !read(event, Key::kDevice, track.device) ||
      !read(event, Key::kStream, track.stream)) {
    return false;
  }
  constexpr std::size_t kMostTracks = 1U << 20U;
  if (process.tracks.size() == kMostTracks && !process.tracks.contains(number)) return false;
  process.tracks[number] = track;
  return true;
}

bool RecordTaker::take_record(const Event& event, Reading& process) {
  TimelineRecord record;
  const std::string_view phase = event.text(Key::kPhase);
  switch (meaning_of(phase, event.text(Key::kCategory), record.kind)) {
    case Meaning::kPicture:
      return true;
    case Meaning::kUnknown:
      return false;
    case Meaning::kRecord:
      break;
  }
  std::uint32_t number = 0;
  if (!event.has(Key::kTime) || !read(event, Key::kTrack, number)) return false;
  if (const auto track = process.tracks.find(number); track != process.tracks.end()) {
    record.thread = track->second.thread;
    record.device = track->second.device;
    record.stream = track->second.stream;
  }
  const bool well =
      read(event, Key::kTime, record.begin) && read(event, Key::kBatch, record.batch) &&
      read(event, Key::kId, record.id) && read(event, Key::kBytes, record.bytes) &&
      read(event, Key::kAsked, record.requested) && read(event, Key::kStream, record.stream) &&
      read(event, Key::kSequence, record.sequence) &&
      read(event, Key::kAllocated, record.allocated) &&
      read(event, Key::kAwaiting, record.awaiting) && read(event, Key::kCached, record.cached) &&
      read(event, Key::kSource, record.source) && read(event, Key::kDevice, record.device) &&
      read(event, Key::kThread, record.thread) && read_detail(event, record);
  if (!well) return false;
  const auto length = event.number(Key::kDuration);
  if (!length || __builtin_add_overflow(record.begin, *length, &record.end)) return false;
  const bool spans = phase == "b" || phase == "e";
  record.name =
      process.builder.name(name_of(event, spans ? kUnnamedBatch : event.text(Key::kCategory)));
  record.site = process.builder.name(event.text(Key::kSite));
  process.builder.add(record);
  return true;
}

Timeline RecordTaker::finish() {
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

}  // namespace weir::timeline::chrome
