// Writes the packets of one file. The code is in one file because each packet depends on what
// earlier packets of its sequence defined (names, times, tracks), so a change of one affects the
// others.

#include <zlib.h>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tools/timeline/model/counters.hpp"
#include "tools/timeline/model/tracks.hpp"
#include "tools/timeline/perfetto/packed.hpp"
#include "tools/timeline/perfetto/perfetto.hpp"
#include "tools/timeline/perfetto/stream.hpp"
#include "tools/timeline/perfetto/wire.hpp"

// A file has two parts: Ours is for our reader, Picture is for Perfetto.

namespace weir::timeline {
namespace {

using perfetto::kTracePacket;
using perfetto::PacketStream;
namespace event = perfetto::event;
namespace ours = perfetto::ours;
namespace packet = perfetto::packet;

constexpr std::size_t kHandOver = 1U << 16U;      ///< bytes that justify a deflated packet
constexpr std::size_t kMostOfPacket = 1U << 13U;  ///< bytes of records in one packet

/// Appends complete packets as one packet that contains them deflated, in a quarter of the bytes.
/// Appends them unchanged if zlib has no memory.
void append_deflated(std::string_view packets, std::string& out) {
  if (packets.empty()) return;
  std::string deflated(compressBound(packets.size()), '\0');
  uLongf size = deflated.size();
  // Level 6 takes three times as long for a tenth fewer bytes.
  constexpr int kLevel = 1;
  const int status =
      compress2(reinterpret_cast<Bytef*>(deflated.data()), &size,
                reinterpret_cast<const Bytef*>(packets.data()), packets.size(), kLevel);
  if (status != Z_OK || size >= packets.size()) {
    out.append(packets);
    return;
  }
  const wire::Message packet(out, kTracePacket);
  wire::put(out, packet::kDeflated, std::string_view(deflated).substr(0, size));
}

/// The part for our reader.
class Ours {
 public:
  explicit Ours(std::string& out) : out_(out) {}

  void begin(const ProcessInfo& info) {
    packed_ = std::make_unique<Packed>();
    told_.clear();
    const wire::Message packet(out_, kTracePacket);
    const wire::Message message(out_, packet::kOurProcess);
    wire::put(out_, ours::kVersionField, ours::kVersion);
    wire::put(out_, ours::kPid, std::uint64_t{info.pid});
    if (info.rank) wire::put(out_, ours::kRank, std::uint64_t{*info.rank});
    wire::put(out_, ours::kProgram, info.program);
    wire::put(out_, ours::kHost, info.host);
    wire::put(out_, ours::kBoot, info.boot);
    wire::put(out_, ours::kMonotonic, info.monotonic_ns);
    wire::put(out_, ours::kUnix, info.unix_ns);
  }
  void add(const TimelineRecord& record, const Names& names) {
    tell(record.name, names);
    tell(record.site, names);
    packed_->pack(record, records_);
    if (records_.size() >= kMostOfPacket) flush();
  }
  void flush() {
    if (records_.empty()) return;
    {
      const wire::Message packet(out_, kTracePacket);
      wire::put(out_, packet::kOurRecords, records_);
    }
    records_.clear();
  }
  void end(Writer::End end, std::uint64_t lost) {
    flush();
    const wire::Message packet(out_, kTracePacket);
    const wire::Message message(out_, packet::kOurEnd);
    wire::put(out_, ours::kLost, lost);
    if (end == Writer::End::kCut) wire::put(out_, ours::kCut, std::uint64_t{1});
  }

 private:
  void tell(std::uint32_t number, const Names& names) {
    if (number == 0 || !told_.insert(number).second) return;
    const wire::Message packet(out_, kTracePacket);
    const wire::Message message(out_, packet::kOurName);
    wire::put(out_, ours::kNumber, std::uint64_t{number});
    wire::put(out_, ours::kText, names.text(number));
  }

  std::string& out_;
  std::unique_ptr<Packed> packed_;
  std::string records_;
  std::unordered_set<std::uint32_t> told_;
};

/// Numbers of annotations, as defined at the start of each sequence.
enum Note : std::uint8_t { kNoteBatch = 1, kNoteBytes, kNoteWhy };
constexpr std::array<std::string_view, 4> kNotes{"", "batch", "bytes", "why"};
constexpr std::array<std::string_view, 3> kStallReasons{"budget", "run-ahead", "turn"};

/// Numbers of texts in Perfetto's tables: first kinds, then names of batches and of the program.
constexpr std::uint64_t kFirstName = kTimelineKinds + 1;
constexpr std::uint64_t number_of(TimelineKind kind) {
  return static_cast<std::uint64_t>(kind) + 1;
}

/// The category of a slice or an instant: its kind; for a batch's slices, which of the two.
enum BatchCategory : std::uint64_t { kOpenCategory = kTimelineKinds + 1, kQueuedCategory };

/// As Perfetto numbers it.
constexpr std::uint64_t number_of(ValueCounter::Unit unit) {
  return static_cast<std::uint64_t>(unit) + 1;
}

/// The part for Perfetto.
class Picture {
 public:
  explicit Picture(std::string& out) : out_(out) {}

  void begin(const ProcessInfo& info);
  void add(const TimelineRecord& record, const Names& names);
  /// Writes everything that is ready. More may follow.
  void flush() { end_slices(std::numeric_limits<std::uint64_t>::max()); }
  void end(Writer::End end, std::uint64_t lost);

 private:
  struct Ending {
    std::uint64_t time = 0, order = 0;
    std::uint32_t track = 0;
    bool operator>(const Ending& other) const noexcept {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  /// The counters of one pool, on their own sequence.
  struct PoolCounters {
    PacketStream stream;
    std::uint64_t track = 0;                ///< the first track; the others follow
    std::array<std::uint64_t, 5> values{};  ///< as last written
    bool told = false;
  };

  void end_slices(std::uint64_t until);
  void add_slice(const TimelineRecord& record, const Names& names);
  void add_moment(const TimelineRecord& record, const Names& names, std::uint64_t track);
  void add_batch(const TimelineRecord& record, const Names& names);
  /// `track` 0: the sequence's track.
  void begin_event(std::uint8_t type, std::uint64_t name, std::uint64_t track);
  void end_event(PacketStream& stream, std::uint64_t time, std::uint64_t track);
  void annotate(Note note, std::uint64_t value);
  void annotate(Note note, std::string_view text);
  void annotate_all(const TimelineRecord& record);
  static void name(PacketStream& stream, std::uint64_t number, std::uint32_t text,
                   const Names& names);
  /// Writes the texts of the record's kind and site on their first use.
  static void tell_kind(PacketStream& stream, const TimelineRecord& record, const Names& names);
  void start(PacketStream& stream, std::uint64_t track);
  void describe(std::uint32_t track);
  void describe(std::uint64_t uuid, std::string_view name);
  void describe_counter(std::uint64_t uuid, std::string_view name, ValueCounter::Unit unit,
                        bool incremental);
  void add_samples();
  void add_pool_sample(const CounterSample& sample);
  PoolCounters& pool_counters(std::uint16_t source);
  [[nodiscard]] std::uint64_t track_uuid(std::uint32_t track) const { return uuids_[track - 1]; }
  /// Returns the arrow that begins or ends at a slice; 0: none.
  [[nodiscard]] std::uint64_t flow_of(const TimelineRecord& record) const;
  [[nodiscard]] std::uint64_t name_of(const TimelineRecord& record) const {
    return record.name == 0 ? number_of(record.kind) : kFirstName + record.name;
  }

  std::string& out_;
  std::uint64_t sequences_ = 0, next_uuid_ = 1, processes_ = 0, windows_ = 0;
  std::uint64_t process_uuid_ = 0;
  std::unordered_set<std::uint64_t> pids_;
  std::optional<PacketStream> stream_;
  Tracks tracks_;
  std::vector<std::uint64_t> uuids_;        ///< by track
  std::deque<PacketStream> track_streams_;  ///< by track; one sequence each
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings_;
  std::uint64_t order_ = 0;
  BatchSpans batches_;
  std::vector<std::array<std::uint64_t, 2>> batch_uuids_;  ///< by lane: open, in flight
  std::optional<Counters> counters_;
  std::vector<CounterSample> samples_;
  std::unordered_map<std::uint16_t, PoolCounters> pools_;
  std::unordered_map<std::uint16_t, std::string> pool_names_;
  /// Their tracks, in the order of kValueCounters; 0: not yet created.
  std::array<std::uint64_t, kValueCounters.size()> value_counters_{};
  std::uint64_t last_time_ = 0;
};

void Picture::begin(const ProcessInfo& info) {
  if (processes_++ != 0) tracks_.next_process();
  process_uuid_ = next_uuid_++;
  stream_.emplace(out_, ++sequences_);
  start(*stream_, 0);
  counters_.emplace();
  batches_ = {};
  batch_uuids_.clear();
  pools_.clear();
  pool_names_.clear();
  value_counters_ = {};
  last_time_ = 0;

  constexpr std::uint64_t kFirstFree = 1'000'000'000;  // above the system's numbers
  std::uint64_t pid = info.pid & 0x7FFFFFFFU;
  if (pid == 0 || !pids_.insert(pid).second) pids_.insert(pid = kFirstFree + processes_);
  std::string name = info.program.empty() ? "process" : info.program;
  if (info.rank) name = "rank " + std::to_string(*info.rank) + " " + name;
  const wire::Message packet(out_, kTracePacket);
  const wire::Message descriptor(out_, packet::kTrackDescriptor);
  wire::put(out_, 1, process_uuid_);
  const wire::Message process(out_, 3);
  wire::put(out_, 1, pid);
  wire::put(out_, 6, shown_text(name));
}

void Picture::describe(std::uint64_t uuid, std::string_view name) {
  const wire::Message packet(out_, kTracePacket);
  const wire::Message descriptor(out_, packet::kTrackDescriptor);
  wire::put(out_, 1, uuid);
  wire::put(out_, 2, shown_text(name));
  wire::put(out_, 5, process_uuid_);
}

void Picture::describe(std::uint32_t track) {
  if (uuids_.size() < track) uuids_.resize(track, 0);
  std::uint64_t& uuid = uuids_[track - 1];
  const bool fresh = uuid == 0;
  if (fresh) uuid = next_uuid_++;
  describe(uuid, tracks_.name(track));
  if (fresh) start(track_streams_.emplace_back(out_, ++sequences_), uuid);
}

void Picture::start(PacketStream& stream, std::uint64_t track) {
  stream.start(track);
  for (std::size_t note = 1; note < kNotes.size(); ++note) {
    stream.name_annotation(note, kNotes[note]);
  }
}

void Picture::describe_counter(std::uint64_t uuid, std::string_view name, ValueCounter::Unit unit,
                               bool incremental) {
  const wire::Message packet(out_, kTracePacket);
  const wire::Message descriptor(out_, packet::kTrackDescriptor);
  wire::put(out_, 1, uuid);
  wire::put(out_, 2, shown_text(name));
  wire::put(out_, 5, process_uuid_);
  const wire::Message counter(out_, 8);
  wire::put(out_, 3, number_of(unit));
  if (incremental) wire::put(out_, 5, std::uint64_t{1});
}

void Picture::begin_event(std::uint8_t type, std::uint64_t name, std::uint64_t track) {
  wire::put(out_, event::kType, std::uint64_t{type});
  wire::put(out_, event::kName, name);
  if (track != 0) wire::put(out_, event::kTrack, track);
}

void Picture::end_event(PacketStream& stream, std::uint64_t time, std::uint64_t track) {
  const PacketStream::Packet packet(stream, time);
  const wire::Message message(out_, packet::kTrackEvent);
  wire::put(out_, event::kType, std::uint64_t{event::kEnd});
  if (track != 0) wire::put(out_, event::kTrack, track);
}

void Picture::annotate(Note note, std::uint64_t value) {
  const wire::Message annotation(out_, event::kAnnotation);
  wire::put(out_, 1, std::uint64_t{note});
  wire::put(out_, 3, value);
}

void Picture::annotate(Note note, std::string_view text) {
  const wire::Message annotation(out_, event::kAnnotation);
  wire::put(out_, 1, std::uint64_t{note});
  wire::put(out_, 6, text);
}

void Picture::annotate_all(const TimelineRecord& record) {
  if (record.batch != 0) annotate(kNoteBatch, std::uint64_t{record.batch});
  if (record.bytes != 0) annotate(kNoteBytes, record.bytes);
  const bool stalls = record.kind == TimelineKind::kStall || record.kind == TimelineKind::kPace;
  if (stalls && record.detail < kStallReasons.size()) {
    annotate(kNoteWhy, kStallReasons[record.detail]);
  }
  if (record.site != 0) wire::put(out_, event::kSource, std::uint64_t{record.site});
}

void Picture::name(PacketStream& stream, std::uint64_t number, std::uint32_t text,
                   const Names& names) {
  stream.name_event(
      number, text == 0 ? kind_name(static_cast<TimelineKind>(number - 1)) : names.text(text));
}

void Picture::tell_kind(PacketStream& stream, const TimelineRecord& record, const Names& names) {
  stream.name_category(number_of(record.kind), kind_name(record.kind));
  if (record.site != 0) stream.name_site(record.site, names.text(record.site));
}

void Picture::end_slices(std::uint64_t until) {
  while (!endings_.empty() && endings_.top().time <= until) {
    const Ending ending = endings_.top();
    endings_.pop();
    end_event(track_streams_[ending.track - 1], ending.time, 0);
  }
}

std::uint64_t Picture::flow_of(const TimelineRecord& record) const {
  if (record.id == 0) return 0;
  constexpr unsigned kProcessBits = 40;
  constexpr std::uint64_t kCalls = std::uint64_t{1} << 39U;  // separates their numbers from
                                                             // operations'
  constexpr unsigned kWindowBits = 32;  // above correlation ids, which may restart in each window
  constexpr std::uint64_t kMostWindows = 128;
  const std::uint64_t process = (processes_ - 1) << kProcessBits;
  switch (record.kind) {
    case TimelineKind::kSubmit:
    case TimelineKind::kExecute:
      return process + record.id;
    case TimelineKind::kCall:
    case TimelineKind::kKernel:
    case TimelineKind::kCopy:
    case TimelineKind::kSet:
      return process + kCalls + ((windows_ % kMostWindows) << kWindowBits) + record.id;
    default:
      return 0;
  }
}

void Picture::add_slice(const TimelineRecord& record, const Names& names) {
  const std::optional<Tracks::Place> place = tracks_.place(record);
  if (!place) return;
  if (place->fresh) describe(place->track);
  if (place->instant) {
    add_moment(record, names, track_uuid(place->track));
    return;
  }
  PacketStream& stream = track_streams_[place->track - 1];
  name(stream, name_of(record), record.name, names);
  const bool executes = record.kind == TimelineKind::kExecute;
  if (!executes) tell_kind(stream, record, names);
  {
    const PacketStream::Packet packet(stream, record.begin);
    const wire::Message message(out_, packet::kTrackEvent);
    begin_event(event::kBegin, name_of(record), 0);
    // An arrow leads to the execution from its submission, which has the details.
    if (!executes) {
      wire::put(out_, event::kCategory, number_of(record.kind));
      annotate_all(record);
    } else if (record.batch != 0) {
      annotate(kNoteBatch, std::uint64_t{record.batch});
    }
    if (const std::uint64_t flow = flow_of(record)) wire::put(out_, event::kFlow, flow);
  }
  endings_.push(
      {.time = std::max(record.begin, record.end), .order = ++order_, .track = place->track});
}

void Picture::add_moment(const TimelineRecord& record, const Names& names, std::uint64_t track) {
  // Name the kind where the record's name describes only the subject.
  const bool says = record.kind == TimelineKind::kNote || record.kind == TimelineKind::kLost;
  const std::uint64_t number = says ? name_of(record) : number_of(record.kind);
  name(*stream_, number, says ? record.name : 0, names);
  tell_kind(*stream_, record, names);
  const std::string about = says ? std::string() : shown_text(names.text(record.name));
  const PacketStream::Packet packet(*stream_, record.begin);
  const wire::Message message(out_, packet::kTrackEvent);
  begin_event(event::kInstant, number, track);
  wire::put(out_, event::kCategory, number_of(record.kind));
  annotate_all(record);
  if (!about.empty()) annotate(kNoteWhy, about);
}

void Picture::add_batch(const TimelineRecord& record, const Names& names) {
  for (const BatchSpans::Change& change : batches_.add(record)) {
    if (batch_uuids_.size() <= change.lane) batch_uuids_.resize(change.lane + 1, {0, 0});
    const bool open = change.span == BatchSpans::Span::kOpen;
    std::uint64_t& uuid = batch_uuids_[change.lane][open ? 0 : 1];
    if (uuid == 0) {
      uuid = next_uuid_++;
      const std::string lane = change.lane == 0 ? "" : " (" + std::to_string(change.lane + 1) + ")";
      describe(uuid, (open ? "batches open" : "batches queued") + lane);
    }
    if (!change.begins) {
      end_event(*stream_, record.begin, uuid);
      continue;
    }
    std::string text = "batch " + std::to_string(record.batch);
    if (record.name != 0) text += " (" + shown_text(names.text(record.name)) + ")";
    if (record.site != 0) stream_->name_site(record.site, names.text(record.site));
    const std::uint64_t category = open ? kOpenCategory : kQueuedCategory;
    stream_->name_category(category, open ? "open" : "in flight");
    const PacketStream::Packet packet(*stream_, record.begin);
    const wire::Message message(out_, packet::kTrackEvent);
    wire::put(out_, event::kType, std::uint64_t{event::kBegin});
    wire::put(out_, event::kCategory, category);
    wire::put(out_, 23, text);  // the record's own name
    wire::put(out_, event::kTrack, uuid);
    annotate_all(record);
  }
}

Picture::PoolCounters& Picture::pool_counters(std::uint16_t source) {
  const auto [place, fresh] =
      pools_.try_emplace(source, PoolCounters{.stream = {out_, sequences_ + 1}});
  if (!fresh) return place->second;
  ++sequences_;
  const std::uint64_t uuid = next_uuid_;
  next_uuid_ += 5;
  std::string& given = pool_names_[source];
  if (given.empty()) given = "pool " + std::to_string(source);
  constexpr std::array<std::string_view, 5> kGauges{"allocated", "cached", "awaiting", "reserved",
                                                    "budget"};
  for (std::size_t i = 0; i < kGauges.size(); ++i) {
    describe_counter(uuid + i, given + ": " + std::string(kGauges[i]), ValueCounter::Unit::kBytes,
                     true);
  }
  place->second.track = uuid;
  place->second.stream.start(uuid);
  return place->second;
}

void Picture::add_pool_sample(const CounterSample& sample) {
  PoolCounters& pool = pool_counters(sample.source);
  const std::array<std::uint64_t, 5> values{sample.allocated, sample.cached, sample.awaiting,
                                            sample.reserved(), sample.budget};
  // Time differences cannot be negative, and a late sample may be the highest.
  const std::uint64_t time = std::max(sample.time, pool.stream.time());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == pool.values[i] && pool.told) continue;
    // Not as extra counters of one packet, because Perfetto stops at the first zero.
    const PacketStream::Packet packet(pool.stream, time);
    const wire::Message message(out_, packet::kTrackEvent);
    wire::put(out_, event::kType, std::uint64_t{event::kValue});
    if (i != 0) wire::put(out_, event::kTrack, pool.track + i);
    wire::put(out_, event::kCounter, values[i] - pool.values[i]);
  }
  pool.told = true;
  pool.values = values;
}

void Picture::add_samples() {
  for (const CounterSample& sample : samples_) {
    if (sample.of == CounterSample::Of::kPool) {
      add_pool_sample(sample);
      continue;
    }
    const ValueCounter& counter = kValueCounters.at(static_cast<std::size_t>(sample.of) - 1);
    std::uint64_t& uuid = value_counters_.at(static_cast<std::size_t>(sample.of) - 1);
    if (uuid == 0) {
      uuid = next_uuid_++;
      describe_counter(uuid, counter.name, counter.unit, false);
    }
    const PacketStream::Packet packet(*stream_, sample.time);
    const wire::Message message(out_, packet::kTrackEvent);
    wire::put(out_, event::kType, std::uint64_t{event::kValue});
    wire::put(out_, event::kTrack, uuid);
    wire::put(out_, event::kCounter, sample.value);
  }
  samples_.clear();
}

void Picture::add(const TimelineRecord& record, const Names& names) {
  if (record.kind == TimelineKind::kPool) {
    pool_names_[record.source] = names.text(record.name);
  }
  if (record.kind == TimelineKind::kStart) ++windows_;
  counters_->add(record, samples_);
  if (!samples_.empty()) add_samples();
  end_slices(record.begin);
  last_time_ = std::max({last_time_, record.begin, record.end});
  if (is_slice(record.kind)) {
    add_slice(record, names);
  } else if (has_trait(record.kind, kMoment)) {
    add_moment(record, names, process_uuid_);
  } else if (record.kind == TimelineKind::kAdmit || record.kind == TimelineKind::kClose ||
             record.kind == TimelineKind::kSettle) {
    add_batch(record, names);
  } else if (record.kind == TimelineKind::kStream || record.kind == TimelineKind::kThread) {
    for (const std::uint32_t track : tracks_.rename(record, names.text(record.name))) {
      describe(track);
    }
  }
}

void Picture::end(Writer::End end, std::uint64_t lost) {
  counters_->finish(samples_);
  add_samples();
  flush();
  const auto remark = [&](const std::string& text) {
    const PacketStream::Packet packet(*stream_, last_time_);
    const wire::Message message(out_, packet::kTrackEvent);
    wire::put(out_, event::kType, std::uint64_t{event::kInstant});
    wire::put(out_, 23, text);
    wire::put(out_, event::kTrack, process_uuid_);
  };
  if (lost != 0) remark(std::to_string(lost) + " events lost");
  if (end == Writer::End::kCut) remark("the recording was cut");
}

class PerfettoWriter final : public Writer {
 public:
  explicit PerfettoWriter(ByteSink& sink) : sink_(sink) {}

  void begin(const ProcessInfo& info) override {
    end_process(End::kComplete, 0);
    under_way_ = true;
    ours_.begin(info);
    picture_.begin(info);
    flush();
  }
  void write(std::span<const TimelineRecord> records, const Names& names) override {
    for (const TimelineRecord& record : records) {
      ours_.add(record, names);
      picture_.add(record, names);
      if (packets_.size() >= kHandOver) hand_over();
    }
  }
  void flush() override {
    ours_.flush();
    picture_.flush();
    hand_over();
  }
  void end_process(End end, std::uint64_t lost) override {
    if (!under_way_) return;
    under_way_ = false;
    picture_.end(end, lost);
    hand_over();
    ours_.end(end, lost);  // last in the file, so that a file without it is known to be truncated
    hand_over();
  }
  void finish(std::uint64_t lost) override { end_process(End::kComplete, lost); }

 private:
  void hand_over() {
    append_deflated(packets_, out_);
    packets_.clear();
    sink_.append(out_);
    out_.clear();
  }

  ByteSink& sink_;
  /// Ours is not deflated, so that a truncated file loses no complete record.
  std::string out_;
  std::string packets_;
  Ours ours_{out_};
  Picture picture_{packets_};
  bool under_way_ = false;
};

}  // namespace

std::unique_ptr<Writer> make_perfetto_writer(ByteSink& sink) {
  return std::make_unique<PerfettoWriter>(sink);
}

}  // namespace weir::timeline
