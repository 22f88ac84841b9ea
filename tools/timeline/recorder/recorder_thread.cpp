// The recorder's thread: writes the new records ten times a second, and waits for requests in
// between.

#include <pthread.h>

#include <cerrno>
#include <ctime>
#include <exception>
#include <filesystem>
#include <new>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/log.hpp"
#include "allocator/timeline/source.hpp"
#include "tools/timeline/model/background_thread.hpp"
#include "tools/timeline/recorder/failure.hpp"
#include "tools/timeline/recorder/recorder.hpp"
#include "tools/timeline/recorder/recording.hpp"

namespace weir::timeline {
namespace {

timespec in(std::chrono::nanoseconds wait) noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = now.tv_nsec + wait.count();
  return {.tv_sec = now.tv_sec + ns / kSecond, .tv_nsec = ns % kSecond};
}

/// Only an earlier timeline may be replaced.
bool is_free(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(path, error);
  return !std::filesystem::exists(status) ||
         (std::filesystem::is_regular_file(status) && is_timeline_or_empty(path));
}

}  // namespace

/// Collects the state of sources. Does not use chunks, because this thread is the one that empties
/// them.
class Recorder::LiveCollector final : public TimelineSink {
 public:
  explicit LiveCollector(Recorder& recorder) : recorder_(recorder) {}
  ~LiveCollector() = default;

  void write(const TimelineRecord& record) noexcept override {
    try {
      records.push_back(record);
    } catch (const std::bad_alloc&) {
      recorder_.lose(0);
      return;
    }
    TimelineRecord& kept = records.back();
    if (kept.begin == 0) kept.begin = recorder_.now();
    kept.end = kept.begin;
  }
  [[nodiscard]] std::uint32_t name(std::string_view text) noexcept override {
    return recorder_.name(text);
  }
  [[nodiscard]] std::uint32_t site(const char* file, int line) noexcept override {
    return recorder_.site(file, line);
  }
  [[nodiscard]] std::uint64_t now() const noexcept override { return recorder_.now(); }
  [[nodiscard]] std::uint64_t at(std::int64_t steady_ns) const noexcept override {
    return recorder_.at(steady_ns);
  }
  [[nodiscard]] const char* note_failure() noexcept override { return nullptr; }
  void note_batch(std::uint32_t /*number*/) noexcept override {}

  std::vector<TimelineRecord> records;

 private:
  Recorder& recorder_;
};

void Recorder::run() noexcept {
  const BackgroundThread watching;
  (void)pthread_setname_np(pthread_self(), "weir-timeline");
  write_head();
  for (bool is_last = false; !is_last; is_last ? void() : sleep()) {
    if (program_has_ended()) (void)begin_end();
    is_last = ending_.load();
    std::uint64_t asked = 0;
    bool keeps_failure = false;
    {
      const Lock lock(mutex_);
      asked = asked_;
      keeps_failure = std::exchange(failure_asked_, false);
    }
    try {
      round();
      if (keeps_failure) keep_failure();
      if (is_last) end_file();
    } catch (const std::exception& error) {
      give_up(error.what());
    }
    const Lock lock(mutex_);
    done_ = asked;
    ended_ = is_last;
    round_ended_.notify_all();
  }
}

/// On this thread like all writing: exceeding a file-size limit raises a signal that would end the
/// program, but this thread blocks it.
void Recorder::write_head() noexcept {
  try {
    drain_.write_head(info_);
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

void Recorder::sleep() noexcept {
  const timespec until = in(options_.every);
  while (sem_clockwait(&wake_, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR) continue;
  while (sem_trywait(&wake_) == 0) continue;
  room_asked_.store(false);  // after the drain, or a post between the two would be lost
}

void Recorder::round() {
  if (handles_signal_ && count_toggles() % 2 != 0) change_window(!recording_.load());
  drain_.round(gather(), advance_);
  ns_per_tick_.store(drain_.ns_per_tick(), std::memory_order_relaxed);
  if (!drain_.failure().empty()) give_up(drain_.failure());
}

MoreRecords Recorder::gather() {
  MoreRecords more;
  {
    const Lock lock(window_mutex_);
    more.in_ticks.swap(marks_);
  }
  if (live_due_.exchange(false)) {
    LiveCollector live(*this);
    for_each_source([&](TimelineSource& source) { source.record_live(live); });
    more.in_ticks.insert(more.in_ticks.end(), live.records.begin(), live.records.end());
  }
  follow_activity(more);
  say_what_was_lost(more);
  return more;
}

TimelineRecord Recorder::remark(TimelineKind kind, std::string_view text) {
  const std::uint64_t time = clock_.now();
  return {.begin = time, .end = time, .name = name(text), .kind = kind};
}

void Recorder::follow_activity(MoreRecords& more) {
  if (options_.activity == nullptr || activity_failed_) return;
  ActivitySource& activity = *options_.activity;
  const bool wanted = recording_.load();
  if (wanted && !activity_runs_) {
    const std::string line = activity.start();
    advance_();
    activity_failed_ = !line.empty();
    activity_runs_ = line.empty();
    if (activity_runs_ && options_.activity_began) std::exchange(options_.activity_began, {})();
    if (activity_failed_) {
      log(LogLevel::kWarn, line);
      more.in_ticks.push_back(remark(TimelineKind::kNote, line));
      add_note(line);
    }
  }
  if (!activity_runs_) return;
  using Collect = ActivitySource::Collect;
  activity.collect(wanted ? Collect::kReady : Collect::kAll, *this, more.monotonic);
  if (!wanted) activity.stop();
  activity_runs_ = wanted;
}

void Recorder::say_what_was_lost(MoreRecords& more) {
  const std::uint64_t lost = lost_.load();
  if (lost > said_lost_) {
    TimelineRecord record = remark(TimelineKind::kLost, "no room in the buffer");
    record.bytes = lost - std::exchange(said_lost_, lost);
    if (const std::uint64_t first = first_lost_.exchange(0)) record.begin = record.end = first;
    more.in_ticks.push_back(record);
  }
  if (options_.activity == nullptr) return;
  const std::uint64_t lost_there = options_.activity->lost();
  if (lost_there > activity_lost_) {
    TimelineRecord record = remark(TimelineKind::kLost, "the profiler had no room");
    record.bytes = lost_there - std::exchange(activity_lost_, lost_there);
    more.in_ticks.push_back(record);
  }
}

/// Adds a note if no batch of the range was recorded.
void Recorder::say_if_empty() {
  if (gave_up_) return;  // the reason was given
  {
    const Lock lock(window_mutex_);
    if (has_recorded_ || !options_.batches) return;
  }
  const std::string line =
      "nothing was recorded of batches from " + std::to_string(options_.batches->first) + " on";
  log(LogLevel::kWarn, "timeline: " + line);
  add_note(line);
}

void Recorder::end_file() {
  say_if_empty();
  drain_.finish(lost_.load() + activity_lost_, advance_);
  if (!drain_.failure().empty()) give_up(drain_.failure());
  TimelineFile* const file = drain_.file();
  const std::uint64_t lost = lost_.load() + activity_lost_ + drain_.unwritten();
  chunks_.shrink();
  const Lock lock(mutex_);
  result_.events = drain_.written();
  result_.lost = lost;
  if (file == nullptr) return;
  file->close();
  result_.file = file->path();
}

void Recorder::give_up(std::string_view why) noexcept {
  if (gave_up_.exchange(true)) return;
  {
    const Lock lock(window_mutex_);
    recording_.store(false);
    TimelineSink* mine = this;
    detail::timeline_sink.compare_exchange_strong(mine, nullptr);
  }
  drain_.abandon();
  try {
    const std::string line =
        "timeline '" + file() + "': nothing more is recorded (" + std::string(why) + ")";
    log(LogLevel::kWarn, line);
    add_note(line);
  } catch (const std::exception&) {
    log(LogLevel::kWarn, "a timeline is not complete: there is no memory for it");
  }
}

void Recorder::add_note(const std::string& line) {
  const Lock lock(mutex_);
  result_.note += (result_.note.empty() ? "" : "; ") + line;
}

void Recorder::keep_failure() noexcept {
  try {
    write_failure();
  } catch (const std::exception& error) {  // the recording continues without it
    log(LogLevel::kWarn, error.what());
  }
}

void Recorder::write_failure() {
  std::size_t made = 0;
  {
    const Lock lock(mutex_);
    made = failure_count_;
  }
  // Failed attempts count, too: each costs the program time, and a line.
  if (drain_.file() == nullptr || failure_tries_ == kMostFailures) return;
  ++failure_tries_;
  LiveCollector collector(*this);
  for_each_source([&](TimelineSource& source) { source.record_live(collector); });
  std::vector<TimelineRecord> live = std::move(collector.records);
  for (TimelineRecord& record : live) {
    record.begin = record.end = drain_.ns_since_zero(record.begin);
  }
  const std::vector<TimelineRecord> tracks = drain_.tracks();
  live.insert(live.begin(), tracks.begin(), tracks.end());
  Timeline timeline;
  timeline.processes.push_back(make_process(info_, begin_with_live(live, drain_.recent()), names_));
  timeline.processes.back().lost = lost_.load() + activity_lost_;
  const std::string path = failure_file(drain_.file()->path(), made + 1);
  const std::string error = is_free(path) ? write_whole(path, bytes_of_failure(timeline))
                                          : "the name is taken by another file";
  if (!error.empty()) {
    log(LogLevel::kWarn, "'" + path + "' cannot be written: " + error);
    return;
  }
  std::string command = failure_command(path);
  const Lock lock(mutex_);
  failure_commands_[failure_count_] = std::move(command);
  ++failure_count_;
}

}  // namespace weir::timeline
