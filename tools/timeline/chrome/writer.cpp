// Writes the lines of one file. The code is in one file because every kind of record becomes a line
// by the same few steps, which share tracks, counters and the buffer.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "tools/timeline/chrome/chrome.hpp"
#include "tools/timeline/chrome/text.hpp"
#include "tools/timeline/model/counters.hpp"
#include "tools/timeline/model/tracks.hpp"

namespace weir::timeline {
namespace {

constexpr std::size_t kHandOver = 1U << 16U;    ///< bytes that justify a call to the sink
constexpr std::uint32_t kMostKept = 1U << 22U;  ///< most names to keep in JSON form
constexpr std::uint32_t kFirstFreePid = 1'000'000'000;

/// Caches texts in JSON form by number, so that each is escaped once. A text is valid until three
/// more are requested.
class EscapedNames {
 public:
  std::string_view text(std::uint32_t number, const Names& names) {
    if (number == 0) return {};
    if (number >= kMostKept) {
      std::string& place = others_[next_++ % others_.size()];
      return place = escaped(names.text(number));
    }
    if (number >= known_.size()) known_.resize(std::size_t{number} + 1);
    std::unique_ptr<std::string>& text = known_[number];
    if (text == nullptr) text = std::make_unique<std::string>(escaped(names.text(number)));
    return *text;
  }
  void clear() { known_.clear(); }

 private:
  std::vector<std::unique_ptr<std::string>> known_;
  std::array<std::string, 4> others_;
  std::size_t next_ = 0;
};

/// Which of the two spans of a batch is open.
struct BegunSpan {
  enum class Span : std::uint8_t { kOpen, kInFlight };
  Span span{};
  std::uint32_t name = 0;
  std::uint64_t time = 0;
};

/// Matches a driver call with the first work that it began, for an arrow. Either may come first.
class CallArrows {
 public:
  struct End {
    std::uint64_t time = 0;
    std::uint32_t track = 0;  ///< 0: not yet known
  };
  struct Arrow {
    End call, work;
  };

  /// Returns the arrow if this record completes it.
  [[nodiscard]] std::optional<Arrow> add(const TimelineRecord& record, std::uint32_t track) {
    Arrow& arrow = arrows_[record.id];
    End& end = record.kind == TimelineKind::kCall ? arrow.call : arrow.work;
    std::optional<Arrow> done;
    if (end.track == 0) {
      end = {record.begin, track};
      if (arrow.call.track != 0 && arrow.work.track != 0 && arrow.call.time <= arrow.work.time)
        done = arrow;
    }
    if (arrows_.size() > kMost) arrows_.erase(arrows_.begin());
    return done;
  }
  void clear() { arrows_.clear(); }

 private:
  static constexpr std::size_t kMost = 65536;  ///< some calls begin nothing
  std::map<std::uint64_t, Arrow> arrows_;      ///< by correlation id; the lowest is the oldest
};

class ChromeWriter final : public Writer {
 public:
  explicit ChromeWriter(ByteSink& sink) : sink_(sink) {}

  void begin(const ProcessInfo& info) override {
    end_process(End::kComplete, 0);
    if (processes_ != 0) tracks_.next_process();
    under_way_ = true;
    pid_ = pid_for(info.pid);
    ++processes_;
    flow_name_ = "p" + std::to_string(processes_);
    call_flow_name_ = flow_name_ + " calls";
    put_process(info);
    flush();
  }

  void write(std::span<const TimelineRecord> records, const Names& names) override {
    names_ = &names;
    for (const TimelineRecord& record : records) {
      put_record(record);
      if (buffer_.size() >= kHandOver) flush();
    }
    names_ = nullptr;
  }

  void flush() override {
    sink_.append(buffer_.text());
    buffer_.clear();
  }

  void end_process(End end, std::uint64_t lost) override {
    if (!under_way_) return;
    under_way_ = false;
    samples_.clear();
    counters_.finish(samples_);
    put_samples();
    if (lost != 0) put_remark(std::to_string(lost) + " events lost");
    if (end == End::kCut) put_remark("the recording was cut");
    begin_event("M", {}, chrome::kEndEvent);
    put_tail(0);
    buffer_.put(end == End::kComplete ? R"("complete":true,"lost":)"
                                      : R"("complete":false,"lost":)");
    buffer_.put(lost);
    end_event();
    counters_ = {};
    escaped_.clear();
    batches_.clear();
    flows_.clear();
    call_arrows_.clear();
    pools_.clear();
    latest_ = 0;
  }

  void finish(std::uint64_t lost) override {
    end_process(End::kComplete, lost);
    buffer_.put(any_ ? "\n]\n" : "[]\n");
    flush();
  }

 private:
  [[nodiscard]] std::uint32_t pid_for(std::uint32_t pid) {
    constexpr std::uint32_t kMostPid = 1U << 31U;
    if (pid == 0 || pid >= kMostPid || pids_.contains(pid)) pid = kFirstFreePid + processes_;
    while (!pids_.insert(pid).second) ++pid;
    return pid;
  }

  // The parts of an event's line. Keys come in a fixed order. `text` is already JSON.
  void begin_event(std::string_view phase, std::string_view category, std::string_view name) {
    buffer_.put(any_ ? ",\n" : "[\n");
    any_ = true;
    buffer_.put(R"({"ph":")");
    buffer_.put(phase);
    if (!category.empty()) {
      buffer_.put(R"(","cat":")");
      buffer_.put(category);
    }
    buffer_.put(R"(","name":")");
    buffer_.put(name);
    buffer_.put('"');
  }
  void put_time(std::uint64_t time) {
    buffer_.put(R"(,"ts":)");
    buffer_.put_time(time);
  }
  /// Writes the process, and the track if it is not 0.
  void put_place(std::uint32_t track) {
    buffer_.put(R"(,"pid":)");
    buffer_.put(pid_);
    if (track == 0) return;
    buffer_.put(R"(,"tid":)");
    buffer_.put(track);
  }
  /// Writes the same and begins `args`.
  void put_tail(std::uint32_t track) {
    put_place(track);
    buffer_.put(R"(,"args":{)");
  }
  void end_event() {
    if (buffer_.text().back() == ',') buffer_.drop_last();
    buffer_.put("}}");
  }
  void put_argument(std::string_view key, std::uint64_t value) {
    if (value == 0) return;
    put_number(key, value);
  }
  void put_number(std::string_view key, std::uint64_t value) {
    buffer_.put('"');
    buffer_.put(key);
    buffer_.put("\":");
    buffer_.put(value);
    buffer_.put(',');
  }
  void put_text(std::string_view key, std::string_view text) {
    buffer_.put('"');
    buffer_.put(key);
    buffer_.put("\":\"");
    buffer_.put(text);
    buffer_.put("\",");
  }

  // Events about the file itself.
  void put_process(const ProcessInfo& info) {
    begin_event("M", {}, chrome::kBeginEvent);
    put_tail(0);
    put_number("version", chrome::kVersion);
    put_number("pid", info.pid);
    if (info.rank) put_number("rank", *info.rank);
    put_text("program", escaped(info.program));
    put_text("host", escaped(info.host));
    put_text("boot", escaped(info.boot));
    put_number("monotonic_ns", info.monotonic_ns);
    put_number("unix_ns", info.unix_ns);
    end_event();
    begin_event("M", {}, "process_name");
    put_tail(0);
    std::string name = info.program.empty() ? "process" : info.program;
    if (info.rank) name += ", rank " + std::to_string(*info.rank);
    name += ", pid " + std::to_string(info.pid);
    if (!info.host.empty()) name += " on " + info.host;
    put_text("name", escaped(name));
    end_event();
    begin_event("M", {}, "process_sort_index");
    put_tail(0);
    put_number("sort_index", info.rank.value_or(processes_ - 1));
    end_event();
  }
  void put_track(std::uint32_t number) {
    const Track& track = tracks_.track(number);
    begin_event("M", {}, "thread_name");
    put_tail(number);
    put_text("name", escaped(tracks_.name(number)));
    if (track.kind == TrackKind::kThread) {
      put_argument("thread", track.number);
    } else if (track.kind == TrackKind::kStream || track.kind == TrackKind::kDevice) {
      put_argument("device", track.device);
      put_argument("stream", track.number);
    }
    end_event();
    begin_event("M", {}, "thread_sort_index");
    put_tail(number);
    // Sorts threads above streams, and the tracks of a stream below each other.
    constexpr std::uint64_t kKinds = 1'000'000;
    constexpr std::uint64_t kLanes = 100;
    put_number("sort_index", static_cast<std::uint64_t>(track.kind) * kKinds +
                                 std::min(track.number, kKinds / kLanes - 1) * kLanes +
                                 std::min<std::uint64_t>(track.lane, kLanes - 1));
    end_event();
  }
  void put_remark(std::string_view text) {
    begin_event("i", chrome::kRecording, text);
    buffer_.put(R"(,"s":"p")");
    put_time(latest_);
    put_tail(0);
    end_event();
  }

  // Counters.
  [[nodiscard]] std::string_view pool_name(std::uint16_t source) {
    const auto [place, fresh] = pools_.try_emplace(source);
    if (fresh) place->second = "pool " + std::to_string(source);
    return place->second;
  }
  void name_pool(const TimelineRecord& record) {
    if (record.name == 0) return;
    std::string name = escaped(names_->text(record.name));
    for (const auto& [source, other] : pools_) {
      if (source != record.source && other == name)
        name += " (" + std::to_string(record.source) + ")";
    }
    pools_[record.source] = std::move(name);
  }
  void begin_counter(std::string_view what, std::string_view of, std::uint64_t time) {
    begin_event("C", {}, what);
    if (!of.empty()) {
      buffer_.drop_last();
      buffer_.put(' ');
      buffer_.put(of);
      buffer_.put('"');
    }
    put_time(time);
    put_tail(0);
  }
  void put_sample(const CounterSample& sample) {
    if (sample.of != CounterSample::Of::kPool) {
      const ValueCounter& counter = kValueCounters.at(static_cast<std::size_t>(sample.of) - 1);
      begin_counter(counter.name, {}, sample.time);
      if (counter.unit == ValueCounter::Unit::kTime) {
        buffer_.put(R"("ms":)");
        buffer_.put_time(sample.value / 1000);
      } else {
        put_number(counter.unit == ValueCounter::Unit::kCount ? "batches" : "bytes", sample.value);
      }
    } else {
      const std::string_view pool = pool_name(sample.source);
      begin_counter("memory", pool, sample.time);
      put_number("allocated", sample.allocated);
      put_number("awaiting", sample.awaiting);
      put_number("cached", sample.cached);
      end_event();
      begin_counter("limits", pool, sample.time);
      put_number("reserved", sample.reserved());
      put_number("budget", sample.budget);
    }
    end_event();
  }
  void put_samples() {
    for (const CounterSample& sample : samples_) put_sample(sample);
    samples_.clear();
  }

  // Records.
  void put_arguments(const TimelineRecord& record, const Track& track, bool unnamed_like_kind) {
    const bool of_stream = track.kind == TrackKind::kStream || track.kind == TrackKind::kDevice;
    const std::uint64_t thread = track.kind == TrackKind::kThread ? track.number : 0;
    if (unnamed_like_kind) put_text("name", name_);
    put_argument("batch", record.batch);
    put_argument("id", record.id);
    put_argument("bytes", record.bytes);
    put_argument("asked", record.requested);
    if (record.stream != (of_stream ? track.number : 0)) put_number("stream", record.stream);
    if (record.site != 0) put_text("site", escaped_.text(record.site, *names_));
    if (record.detail != 0) put_detail(record);
    put_argument("seq", record.sequence);
    put_argument("alloc", record.allocated);
    put_argument("await", record.awaiting);
    put_argument("cached", record.cached);
    put_argument("source", record.source);
    if (record.device != (of_stream ? track.device : 0)) put_number("device", record.device);
    if (record.thread != thread) put_number("thread", record.thread);
  }
  void put_detail(const TimelineRecord& record) {
    const std::span<const std::string_view> words = chrome::detail_words(record.kind);
    if (record.detail < words.size()) {
      put_text("detail", words[record.detail]);
    } else {
      put_number("detail", record.detail);
    }
  }

  /// Returns the place of a record that is drawn on its thread or has no track of its own.
  [[nodiscard]] Tracks::Place place_of(const TimelineRecord& record) {
    if (const auto place = tracks_.place(record)) return *place;
    const TimelineRecord instant{.thread = record.thread, .kind = TimelineKind::kNote};
    return *tracks_.place(instant);
  }

  void put_record(const TimelineRecord& record) {
    latest_ = std::max({latest_, record.begin, record.end});
    if (record.kind == TimelineKind::kPool) name_pool(record);
    if (record.kind == TimelineKind::kStart) begin_window();
    counters_.add(record, samples_);
    if (!samples_.empty()) put_samples();
    for (const std::uint32_t track : tracks_.rename(record, names_->text(record.name))) {
      put_track(track);
    }
    const Tracks::Place place = place_of(record);
    if (place.fresh) put_track(place.track);
    name_ = escaped_.text(record.name, *names_);
    if (put_batch(record, place.track)) return;
    const bool slice = is_slice(record.kind);
    const std::string_view kind = kind_name(record.kind);
    begin_event(slice && !place.instant ? "X" : "i", kind, name_.empty() ? kind : name_);
    const Track& track = tracks_.track(place.track);
    if (!slice && (track.kind == TrackKind::kProcess || has_trait(record.kind, kOfProcess))) {
      buffer_.put(R"(,"s":"p")");
    }
    put_time(record.begin);
    if (slice) {
      buffer_.put(R"(,"dur":)");
      buffer_.put_time(std::max(record.begin, record.end) - record.begin);
    }
    put_tail(place.track);
    put_arguments(record, track, name_ == kind);
    end_event();
    if (slice && !place.instant && record.end > record.begin) put_flow(record, place.track);
  }

  /// Correlation ids may restart in it.
  void begin_window() {
    ++windows_;
    call_arrows_.clear();
  }

  void put_flow(const TimelineRecord& record, std::uint32_t track) {
    if (record.id == 0) return;
    const CallArrows::End end{record.begin, track};
    switch (record.kind) {
      case TimelineKind::kSubmit:
        if (flows_.insert(record.id).second) put_flow_end("s", flow_name_, record.id, end);
        break;
      case TimelineKind::kExecute:
        flows_.erase(record.id);
        put_flow_end("f", flow_name_, record.id, end);
        break;
      case TimelineKind::kCall:
      case TimelineKind::kKernel:
      case TimelineKind::kCopy:
      case TimelineKind::kSet:
        if (const auto arrow = call_arrows_.add(record, track)) {
          constexpr unsigned kWindowBits = 32;  // above correlation ids
          const std::uint64_t id = (windows_ << kWindowBits) + record.id;
          put_flow_end("s", call_flow_name_, id, arrow->call);
          put_flow_end("f", call_flow_name_, id, arrow->work);
        }
        break;
      default:
        break;
    }
  }
  /// Viewers match the ends of an arrow by category, name and id, across processes.
  void put_flow_end(std::string_view phase, std::string_view name, std::uint64_t id,
                    const CallArrows::End& end) {
    begin_event(phase, chrome::kFlow, name);
    if (phase == "f") buffer_.put(R"(,"bp":"e")");
    put_id(id);
    put_time(end.time);
    put_place(end.track);
    buffer_.put('}');
  }
  void put_id(std::uint64_t number) {
    buffer_.put(R"(,"id":)");
    buffer_.put(number);
  }

  void put_batch_event(std::string_view phase, std::string_view span, std::uint32_t name,
                       const TimelineRecord& record, std::uint32_t track) {
    const std::string_view text = escaped_.text(name, *names_);
    begin_event(phase, span, text.empty() ? chrome::kUnnamedBatch : text);
    // Viewers match the ends of a span by category and id, across processes.
    constexpr unsigned kBatchBits = 32;
    put_id((std::uint64_t{processes_ - 1} << kBatchBits) + record.batch);
    put_time(record.begin);
    put_tail(track);
  }
  /// Returns whether the record ends or begins a batch's span, or both.
  [[nodiscard]] bool put_batch(const TimelineRecord& record, std::uint32_t track) {
    using Span = BegunSpan::Span;
    const auto found = batches_.find(record.batch);
    const bool has = found != batches_.end();
    const auto ends = [&](Span span) {
      return has && found->second.span == span && found->second.time <= record.begin;
    };
    const auto draw = [&](std::string_view phase, std::string_view span) {
      put_batch_event(phase, span, record.name, record, track);
      put_arguments(record, tracks_.track(track), name_ == chrome::kUnnamedBatch);
      end_event();
    };
    if (record.kind == TimelineKind::kAdmit) {
      if (has) return false;
      batches_[record.batch] = {Span::kOpen, record.name, record.begin};
      draw("b", chrome::kOpen);
      return true;
    }
    if (record.kind == TimelineKind::kClose) {
      if (ends(Span::kOpen)) {
        put_batch_event("e", chrome::kOpen, found->second.name, record, track);
        end_event();
      } else if (has) {
        return false;
      }
      batches_[record.batch] = {Span::kInFlight, record.name, record.begin};
      draw("b", chrome::kInFlight);
      return true;
    }
    if (record.kind != TimelineKind::kSettle) return false;
    if (!ends(Span::kInFlight) || found->second.name != record.name) return false;
    draw("e", chrome::kInFlight);
    batches_.erase(found);
    return true;
  }

  ByteSink& sink_;
  TextBuffer buffer_;
  bool any_ = false;        ///< an event was written
  bool under_way_ = false;  ///< a process has begun and not ended
  std::uint32_t processes_ = 0;
  std::set<std::uint32_t> pids_;
  Tracks tracks_;

  // State of the current process.
  std::uint32_t pid_ = 0;
  const Names* names_ = nullptr;
  EscapedNames escaped_;
  std::string_view name_;       ///< of the current record, as JSON
  std::string flow_name_;       ///< of arrows from driver calls, which have other numbers
  std::string call_flow_name_;  ///< of arrows from calls, whose numbers are others
  Counters counters_;
  std::vector<CounterSample> samples_;
  /// By batch: viewers refuse an end without a begin.
  std::unordered_map<std::uint32_t, BegunSpan> batches_;
  /// Operations with an open arrow: viewers refuse two of one number. Few; most inserts and erases
  /// are at its end.
  std::set<std::uint64_t> flows_;
  CallArrows call_arrows_;
  std::uint64_t windows_ = 0;
  std::unordered_map<std::uint16_t, std::string> pools_;  ///< names, as JSON
  std::uint64_t latest_ = 0;
};

}  // namespace

std::unique_ptr<Writer> make_chrome_writer(ByteSink& sink) {
  return std::make_unique<ChromeWriter>(sink);
}

}  // namespace weir::timeline
