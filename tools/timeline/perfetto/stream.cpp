#include "tools/timeline/perfetto/stream.hpp"

#include <algorithm>

#include "tools/timeline/model/tracks.hpp"

namespace weir::timeline::perfetto {
namespace {

constexpr std::uint64_t kBootTime = 6;        ///< Perfetto's number of a trace's clock
constexpr std::uint64_t kSequenceClock = 64;  ///< a clock local to the sequence
constexpr std::uint64_t kClearsState = 1;     ///< this packet restarts the sequence

}  // namespace

void PacketStream::start(std::uint64_t track) {
  const wire::Message packet(*out_, kTracePacket);
  wire::put(*out_, packet::kSequence, sequence_);
  wire::put(*out_, packet::kSequenceFlags, kClearsState);
  {
    const wire::Message snapshot(*out_, packet::kClockSnapshot);
    {
      const wire::Message clock(*out_, 1);
      wire::put(*out_, 1, kBootTime);
      wire::put(*out_, 2, std::uint64_t{0});
    }
    const wire::Message clock(*out_, 1);
    wire::put(*out_, 1, kSequenceClock);
    wire::put(*out_, 2, std::uint64_t{0});
    wire::put(*out_, 3, std::uint64_t{1});  // times are differences
  }
  const wire::Message defaults(*out_, packet::kDefaults);
  wire::put(*out_, packet::kTimestampClock, kSequenceClock);
  if (track == 0) return;
  const wire::Message events(*out_, 11);
  wire::put(*out_, event::kTrack, track);
}

PacketStream::Packet::Packet(PacketStream& stream, std::uint64_t time)
    : packet_(*stream.out_, kTracePacket) {
  std::string& out = *stream.out_;
  if (time >= stream.time_) {
    wire::put(out, packet::kTimestamp, time - stream.time_);
    stream.time_ = time;
  } else {
    wire::put(out, packet::kTimestamp, time);
    wire::put(out, packet::kTimestampClock, kBootTime);
  }
  wire::put(out, packet::kSequence, stream.sequence_);
}

void PacketStream::intern(std::uint32_t kind, std::uint64_t number, std::string_view text) {
  const wire::Message packet(*out_, kTracePacket);
  wire::put(*out_, packet::kSequence, sequence_);
  const wire::Message interned(*out_, packet::kInterned);
  const wire::Message entry(*out_, kind);
  wire::put(*out_, 1, number);
  wire::put(*out_, 2, shown_text(text));
}

void PacketStream::name_site(std::uint64_t number, std::string_view site) {
  if (!sites_.insert(number).second) return;
  const auto [file, line] = split_site(site);
  const wire::Message packet(*out_, kTracePacket);
  wire::put(*out_, packet::kSequence, sequence_);
  const wire::Message interned(*out_, packet::kInterned);
  const wire::Message entry(*out_, 4);
  wire::put(*out_, 1, number);
  wire::put(*out_, 2, shown_text(file));
  if (line != 0) wire::put(*out_, 4, std::uint64_t{line});
}

}  // namespace weir::timeline::perfetto

namespace weir::timeline {

namespace {

constexpr std::size_t kMostLanes = 256;

}  // namespace

void BatchSpans::begin(const TimelineRecord& record, Span span, std::vector<Change>& changes) {
  std::vector<Lane>& all = lanes(span);
  auto free = std::find_if(all.begin(), all.end(), [&](const Lane& lane) {
    return !lane.taken && lane.free_from <= record.begin;
  });
  if (free == all.end()) {
    if (all.size() == kMostLanes) return;
    free = all.insert(all.end(), Lane{});
  }
  free->taken = true;
  const auto lane = static_cast<std::uint32_t>(free - all.begin());
  begun_[record.batch] = {.span = span, .lane = lane, .time = record.begin};
  changes.push_back({.span = span, .begins = true, .lane = lane});
}

std::vector<BatchSpans::Change> BatchSpans::add(const TimelineRecord& record) {
  std::vector<Change> changes;
  if (const auto found = begun_.find(record.batch); found != begun_.end()) {
    const Begun begun = found->second;
    const bool next = record.kind == TimelineKind::kSettle ||
                      (record.kind == TimelineKind::kClose && begun.span == Span::kOpen);
    if (!next || record.begin < begun.time) return changes;
    lanes(begun.span)[begun.lane] = {.taken = false, .free_from = record.begin};
    begun_.erase(found);
    changes.push_back({.span = begun.span, .begins = false, .lane = begun.lane});
  }
  if (record.kind == TimelineKind::kAdmit) begin(record, Span::kOpen, changes);
  if (record.kind == TimelineKind::kClose) begin(record, Span::kQueued, changes);
  return changes;
}

}  // namespace weir::timeline
