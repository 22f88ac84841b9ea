#include "tools/timeline/recorder/recorder.hpp"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/time_after.hpp"
#include "tools/timeline/model/background_thread.hpp"
#include "tools/timeline/model/tracks.hpp"
#include "tools/timeline/recorder/recording.hpp"

namespace weir::timeline {
namespace {

std::atomic<std::uint32_t> last_thread{0};
pthread_key_t end_of_thread;

std::uint64_t steady_ns_now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

/// Where the calling thread writes. Trivially destructible, because other thread-locals may write
/// from their destructors.
struct Recorder::Cursor {
  Recorder* recorder = nullptr;
  Chunk* chunk = nullptr;
  std::uint32_t count = 0;          ///< records in the chunk
  std::uint32_t thread = 0;         ///< its number; 0: none yet
  std::uint32_t system_thread = 0;  ///< the system's thread number
  std::uint32_t thread_name = 0;    ///< the recorded name
  NameCache* names = nullptr;
};

thread_local constinit Recorder::Cursor Recorder::cursor;
std::atomic<Recorder*> Recorder::newest{nullptr};

Recorder& Recorder::make(ProcessInfo info, RecorderOutput output, RecorderOptions options) {
  watch_forks();
  auto* const made = new Recorder(std::move(info), std::move(output), std::move(options));
  Recorder& recorder = *made;
  recorder.older_ = newest.load();
  while (!newest.compare_exchange_weak(recorder.older_, made)) continue;

  recorder.drain_.begin(recorder.info_);
  recorder.handles_signal_ = recorder.options_.by_signal && take_toggle_signal(recorder.wake_);
  try {
    const AllSignalsBlocked blocked;
    recorder.thread_ = std::thread([made] { made->run(); });
  } catch (const std::system_error&) {
    recorder.alive_.store(false);
    recorder.options_.activity.reset();  // otherwise it would gather with nobody reading
    if (recorder.handles_signal_) leave_toggle_signal();
    if (TimelineFile* const file = recorder.drain_.file()) file->close();
    throw;
  }
  if (recorder.options_.batches) {
    detail::timeline_batches.store(made);
    if (recorder.options_.batches->first != 0) return recorder;
    recorder.batch_stage_.store(1);
  }
  recorder.start();
  return recorder;
}

Recorder::Recorder(ProcessInfo info, RecorderOutput output, RecorderOptions options)
    : options_(std::move(options)),
      info_(std::move(info)),
      names_(NameTable::of_process()),
      chunks_(options_.buffer),
      drain_(clock_, chunks_, names_, std::move(output),
             {.ns = options_.recent.ns,
              .records = options_.keeps_failures ? options_.recent.records : 0}),
      advance_([this] { advances_.fetch_add(1); }),
      ns_per_tick_(clock_.ns_per_tick()) {
  sem_init(&wake_, 0, 0);
  const TimelineFile* const file = drain_.file();
  if (file == nullptr) return;
  result_.file = file->path();
  result_.note = file->note();
}

void Recorder::watch_forks() {
  static const bool kOnce = [] {
    if (const int error = pthread_key_create(&end_of_thread, on_thread_end)) {
      throw std::system_error(error, std::generic_category(), "a key for the ends of threads");
    }
    return pthread_atfork(nullptr, nullptr, on_fork_in_child) == 0;
  }();
  (void)kOnce;
}

void Recorder::on_fork_in_child() noexcept {
  // Take no lock: another thread of the parent may have held any lock at the fork.
  detail::timeline_sink.store(nullptr);
  detail::timeline_batches.store(nullptr);
  for (Recorder* each = newest.load(); each != nullptr; each = each->older_) {
    each->recording_.store(false);
    each->forked_.store(true);
    if (!each->alive_.exchange(false)) continue;
    if (TimelineFile* const file = each->drain_.file()) file->leave_to_parent();
  }
  NameTable::leave_to_parent();
  leave_toggle_signal_to_parent();
  NameCache* const names = cursor.names;  // it detects a changed table by itself
  cursor = {};
  cursor.names = names;
}

void Recorder::on_thread_end(void* /*cursor*/) noexcept {
  // Runs after the destructors of thread-locals, and again if a later destructor writes.
  Cursor& mine = cursor;
  if (mine.chunk != nullptr && mine.recorder->alive_.load()) {
    mine.recorder->chunks_.give(*mine.chunk);
  }
  mine.recorder = nullptr;
  mine.chunk = nullptr;
  delete std::exchange(mine.names, nullptr);
}

void Recorder::write(const TimelineRecord& record) noexcept {
  Cursor& mine = cursor;
  const bool has_room =
      mine.recorder == this && mine.chunk != nullptr && mine.count < Chunk::kRecords;
  if (!has_room && !make_room(mine)) {
    lose(record.begin);
    return;
  }
  TimelineRecord& place = mine.chunk->records[mine.count];
  place = record;
  place.thread = mine.thread;
  if (place.begin == 0) place.begin = record.end != 0 ? record.end : clock_.now();
  if (place.end == 0) {
    const bool is_slice = timeline::is_slice(record.kind) && record.begin != 0;
    place.end = is_slice ? clock_.now() : place.begin;
  }
  if (place.batch == 0 || place.site == 0) {
    const TimelineWork work = TimelineScope::current();
    if (place.batch == 0) place.batch = work.batch;
    if (place.site == 0 && work.file != nullptr) place.site = site(work.file, work.line);
  }
  mine.chunk->filled.store(++mine.count, std::memory_order_release);
}

bool Recorder::make_room(Cursor& mine) noexcept {
  if (!alive_.load(std::memory_order_relaxed)) return false;
  if (mine.recorder != this) {
    if (mine.chunk != nullptr && mine.recorder->alive_.load()) {
      mine.recorder->chunks_.give(*mine.chunk);
    }
    mine.chunk = nullptr;
    mine.recorder = this;
    mine.thread_name = 0;
    if (mine.thread == 0) mine.thread = ++last_thread;
    mine.system_thread = static_cast<std::uint32_t>(gettid());
    (void)pthread_setspecific(end_of_thread, &mine);
  }
  mine.count = 0;
  mine.chunk = chunks_.exchange(std::exchange(mine.chunk, nullptr));
  if (chunks_.is_half_full()) ask_for_room();
  if (mine.chunk == nullptr) return false;
  name_thread(mine);
  return true;
}

void Recorder::ask_for_room() noexcept {
  // Once per round. Threads without room come here with each event, faster than the semaphore can
  // be counted down; the recorder's thread would do nothing else.
  if (room_asked_.load(std::memory_order_relaxed) || room_asked_.exchange(true)) return;
  (void)sem_post(&wake_);
}

void Recorder::name_thread(Cursor& mine) noexcept {
  constexpr std::size_t kLongestOfLinux = 16;
  std::array<char, kLongestOfLinux> text{};
  if (pthread_getname_np(pthread_self(), text.data(), text.size()) != 0) return;
  const std::uint32_t number = name(text.data());
  if (number == mine.thread_name) return;
  mine.thread_name = number;
  const std::uint64_t time = clock_.now();
  mine.chunk->records[0] = {.begin = time,
                            .end = time,
                            .id = mine.system_thread,
                            .name = number,
                            .thread = mine.thread,
                            .kind = TimelineKind::kThread};
  mine.chunk->filled.store(mine.count = 1, std::memory_order_release);
}

void Recorder::lose(std::uint64_t ticks) noexcept {
  if (!alive_.load(std::memory_order_relaxed)) return;
  lost_.fetch_add(1, std::memory_order_relaxed);
  if (first_lost_.load(std::memory_order_relaxed) != 0) return;
  std::uint64_t none = 0;
  first_lost_.compare_exchange_strong(none, ticks != 0 ? ticks : clock_.now());
}

NameCache* Recorder::own_names() noexcept {
  Cursor& mine = cursor;
  if (mine.names == nullptr) {
    mine.names = new (std::nothrow) NameCache;
    if (mine.names != nullptr) (void)pthread_setspecific(end_of_thread, &mine);
  }
  return mine.names;
}

std::uint32_t Recorder::name(std::string_view text) noexcept {
  if (!alive_.load(std::memory_order_relaxed)) return 0;
  NameCache* const cache = own_names();
  return cache != nullptr ? cache->name(names_, text) : names_.number(text);
}

std::uint32_t Recorder::site(const char* file, int line) noexcept {
  if (!alive_.load(std::memory_order_relaxed)) return 0;
  NameCache* const cache = own_names();
  return cache != nullptr ? cache->site(names_, file, line) : 0;
}

std::uint64_t Recorder::at(std::int64_t steady_ns) const noexcept {
  // Relative to now: the times are close, so an inexact rate matters little.
  const std::uint64_t ticks = clock_.now();
  const auto ago = static_cast<double>(static_cast<std::int64_t>(steady_ns_now()) - steady_ns);
  const auto back = static_cast<std::int64_t>(ago / ns_per_tick_.load(std::memory_order_relaxed));
  const std::int64_t then = static_cast<std::int64_t>(ticks) - back;
  return then > 0 ? static_cast<std::uint64_t>(then) : 1;
}

void Recorder::change_window(bool record) noexcept {
  if (!alive_.load()) return;  // in a forked child, whose parent may have held the lock
  {
    const Lock lock(window_mutex_);
    if (!alive_ || ending_ || gave_up_ || recording_ == record) return;
    recording_.store(record);
    has_recorded_ = has_recorded_ || record;
    mark_window(record ? TimelineKind::kStart : TimelineKind::kStop);
    TimelineSink* mine = this;
    if (record) {
      detail::timeline_sink.store(this);
      live_due_.store(true);  // after the mark: records made in between appear at worst twice
    } else {
      detail::timeline_sink.compare_exchange_strong(mine, nullptr);
    }
  }
  (void)sem_post(&wake_);
}

void Recorder::mark_window(TimelineKind kind) noexcept {
  const std::uint64_t time = clock_.now();
  try {
    marks_.push_back({.begin = time, .end = time, .kind = kind});
  } catch (const std::bad_alloc&) {
    lose(time);
  }
}

void Recorder::start() noexcept {
  change_window(true);
  (void)wait_for_round(options_.patience);
}

void Recorder::stop() noexcept {
  change_window(false);
  (void)wait_for_round(options_.patience);
}

void Recorder::note_batch(std::uint32_t number) noexcept {
  if (!options_.batches) return;
  const int stage = options_.batches->contains(number) ? 1
                    : number < options_.batches->first ? 0
                                                       : 2;
  // Batches of several producers come in any order, but the range must begin and end only once.
  int seen = batch_stage_.load(std::memory_order_relaxed);
  while (stage > seen) {
    if (!batch_stage_.compare_exchange_weak(seen, stage)) continue;
    change_window(stage == 1);
    if (batch_stage_.load() == 2) change_window(false);
    return;
  }
}

bool Recorder::flush_now() noexcept {
  return wait_for_round(options_.patience) && !gave_up_.load();
}

bool Recorder::wait_for_round(std::chrono::milliseconds patience) noexcept {
  const NoCancel no_cancel;
  if (!alive_.load()) return false;
  Lock lock(mutex_);
  const std::uint64_t mine = ++asked_;
  (void)sem_post(&wake_);
  wait_while_it_advances(lock, mine, patience);
  return done_ >= mine;
}

void Recorder::wait_while_it_advances(Lock& lock, std::uint64_t rounds,
                                      std::chrono::milliseconds patience) noexcept {
  std::uint64_t advances = advances_.load();
  while (done_ < rounds && !ended_) {
    if (round_ended_.wait_until(lock, time_after_now(patience)) == std::cv_status::no_timeout)
      continue;
    if (std::exchange(advances, advances_.load()) == advances_.load()) return;
  }
}

bool Recorder::begin_end() noexcept {
  {
    const Lock lock(window_mutex_);
    if (recording_.exchange(false)) mark_window(TimelineKind::kStop);
    if (ending_.exchange(true)) return false;
    TimelineSink* mine = this;
    detail::timeline_sink.compare_exchange_strong(mine, nullptr);
    mine = this;
    detail::timeline_batches.compare_exchange_strong(mine, nullptr);
  }
  if (handles_signal_) leave_toggle_signal();
  return true;
}

RecordingResult Recorder::finish() noexcept {
  const NoCancel no_cancel;
  if (forked_.load()) return {};
  const bool is_first = begin_end();
  (void)sem_post(&wake_);
  const bool has_ended = wait_for_end();
  if (is_first && thread_.joinable()) {
    if (has_ended) {
      thread_.join();
    } else {
      thread_.detach();
      log(LogLevel::kWarn, "a timeline is not complete: its disk or the profiler does not answer");
    }
  }
  alive_.store(false);
  try {
    const Lock lock(mutex_);
    return result_;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

bool Recorder::wait_for_end() noexcept {
  Lock lock(mutex_);
  wait_while_it_advances(lock, UINT64_MAX, options_.patience);
  return ended_;
}

const char* Recorder::note_failure() noexcept {
  if (!options_.keeps_failures || !alive_.load() || failing_.exchange(true)) return nullptr;
  std::size_t before = 0;
  {
    const Lock lock(mutex_);
    before = failure_count_;
    failure_asked_ = true;
  }
  (void)wait_for_round(options_.patience);
  const char* command = nullptr;
  {
    const Lock lock(mutex_);
    if (failure_count_ > before) command = failure_commands_[failure_count_ - 1].c_str();
  }
  failing_.store(false);
  return command;
}

std::string Recorder::file() const {
  if (forked_.load()) return {};
  const Lock lock(mutex_);
  return result_.file;
}

std::string Recorder::note() const {
  if (forked_.load()) return {};
  const Lock lock(mutex_);
  return result_.note;
}

}  // namespace weir::timeline
