#pragma once

// The recorder of a process. Threads write records into their own chunks; the recorder's thread
// writes them to the file ten times a second. What is in the file can be read, whatever happens to
// the process.

#include <semaphore.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/tick_clock.hpp"
#include "allocator/timeline/sink.hpp"
#include "tools/timeline/model/activity.hpp"
#include "tools/timeline/model/timeline.hpp"
#include "tools/timeline/recorder/chunks.hpp"
#include "tools/timeline/recorder/drain.hpp"
#include "tools/timeline/recorder/failure.hpp"
#include "tools/timeline/recorder/name_table.hpp"
#include "tools/timeline/recorder/settings.hpp"

namespace weir::timeline {

struct RecorderOptions {
  Bytes buffer = mib(64);                      ///< for records not yet written
  std::optional<BatchRange> batches{};         ///< the batches to record; all unless set
  std::chrono::milliseconds every{100};        ///< how often to update the file
  std::chrono::milliseconds patience{5000};    ///< how long to wait for a hanging disk
  std::unique_ptr<ActivitySource> activity{};  ///< records the device's activity; may be null
  std::function<void()> activity_began{};      ///< called once, when `activity` has started; may be
                                               ///< empty
  bool by_signal = false;                      ///< SIGUSR2 starts and stops recording
  bool keeps_failures = false;                 ///< note_failure writes the last seconds to a file
  RecentLimits recent{};                       ///< the limits of that file
};

/// The result of a recording.
struct RecordingResult {
  std::uint64_t events = 0;  ///< number in the file
  std::uint64_t lost = 0;    ///< dropped because there was no room
  std::string file;          ///< empty if there is none
  std::string note;          ///< a line for people; empty if all is well
};

/// Thread-safe. Never destroyed, because a thread may be inside it at any time. A forked child
/// records nothing.
class Recorder final : public TimelineSink {
 public:
  /// Begins to record, now or with the first batch of `options.batches`. Pass `info` without its
  /// times. Throws std::system_error if no thread or no thread-specific key is available; the
  /// file's name is free again then.
  static Recorder& make(ProcessInfo info, RecorderOutput output, RecorderOptions options = {});

  /// Starts recording, beginning with what is live. Does nothing while it records.
  void start() noexcept;
  /// Stops recording until the next start. Returns once the file has all records.
  void stop() noexcept;
  /// Returns true once the file has all records made before the call. Returns false if the disk
  /// hangs or the file has ended.
  bool flush_now() noexcept;
  /// Ends the recording and its file, and returns the result. Later calls only wait for the first.
  /// For exit handlers, too: it does not wait for a hanging disk.
  RecordingResult finish() noexcept;
  [[nodiscard]] bool is_recording() const noexcept { return recording_.load(); }
  [[nodiscard]] bool has_ended() const noexcept { return ending_.load(); }
  /// The path of the file, and a line about it, usually empty. Both empty in a forked child.
  [[nodiscard]] std::string file() const;
  [[nodiscard]] std::string note() const;

  void write(const TimelineRecord& record) noexcept override;
  [[nodiscard]] std::uint32_t name(std::string_view text) noexcept override;
  [[nodiscard]] std::uint32_t site(const char* file, int line) noexcept override;
  [[nodiscard]] std::uint64_t now() const noexcept override { return clock_.now(); }
  [[nodiscard]] std::uint64_t at(std::int64_t steady_ns) const noexcept override;
  [[nodiscard]] const char* note_failure() noexcept override;
  void note_batch(std::uint32_t number) noexcept override;

 private:
  struct Cursor;
  class LiveCollector;
  static thread_local constinit Cursor cursor;
  static std::atomic<Recorder*> newest;  ///< its `older_` is the previous one

  Recorder(ProcessInfo info, RecorderOutput output, RecorderOptions options);

  // Run on the program's threads.
  [[nodiscard]] bool make_room(Cursor& mine) noexcept;
  void ask_for_room() noexcept;
  void name_thread(Cursor& mine) noexcept;
  void lose(std::uint64_t ticks) noexcept;
  void change_window(bool record) noexcept;
  void mark_window(TimelineKind kind) noexcept WEIR_REQUIRES(window_mutex_);
  [[nodiscard]] bool wait_for_round(std::chrono::milliseconds patience) noexcept;
  /// Stops recording and makes the next round the last. Returns false if that was done before.
  bool begin_end() noexcept;
  [[nodiscard]] bool wait_for_end() noexcept;
  /// Waits for that many rounds, or for the end. Gives up once the recorder's thread did nothing
  /// for so long.
  void wait_while_it_advances(Lock& lock, std::uint64_t rounds,
                              std::chrono::milliseconds patience) noexcept WEIR_REQUIRES(mutex_);
  static NameCache* own_names() noexcept;
  static void on_thread_end(void* cursor) noexcept;
  static void on_fork_in_child() noexcept;
  static void watch_forks();

  // Run on the recorder's thread.
  void run() noexcept;
  void write_head() noexcept;
  void sleep() noexcept;
  void round();
  void end_file();
  void say_if_empty();
  [[nodiscard]] MoreRecords gather();
  void follow_activity(MoreRecords& more);
  void say_what_was_lost(MoreRecords& more);
  [[nodiscard]] TimelineRecord remark(TimelineKind kind, std::string_view text);
  void keep_failure() noexcept;
  void write_failure();
  void give_up(std::string_view why) noexcept;
  /// Adds a line to the result's note.
  void add_note(const std::string& line);

  RecorderOptions options_;
  ProcessInfo info_;
  const TickClock clock_;
  NameTable& names_;
  ChunkStore chunks_;
  Drain drain_;  ///< used by the recorder's thread only
  Recorder* older_ = nullptr;
  std::thread thread_;
  const std::function<void()> advance_;

  std::atomic<bool> alive_{true};    ///< false in a forked child, and after the end
  std::atomic<bool> forked_{false};  ///< this is a forked child
  std::atomic<bool> recording_{false};
  std::atomic<bool> live_due_{false};  ///< live blocks must be recorded
  std::atomic<bool> ending_{false};
  std::atomic<bool> gave_up_{false};
  std::atomic<double> ns_per_tick_;
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> first_lost_{0};  ///< ticks; 0: none since the last report
  std::atomic<std::uint64_t> advances_{0};
  std::atomic<int> batch_stage_{0};  ///< relative to options_.batches: 0 before, 1 within, 2 after
  std::atomic<bool> failing_{false};
  std::atomic<bool> room_asked_{false};  ///< since its thread last slept
  sem_t wake_{};

  // Used by the recorder's thread only.
  std::uint64_t said_lost_ = 0;
  std::uint64_t activity_lost_ = 0;
  bool handles_signal_ = false;
  bool activity_runs_ = false;
  bool activity_failed_ = false;
  std::size_t failure_tries_ = 0;

  Mutex window_mutex_{LockRank::kTimeline};
  /// Starts and stops that are not yet in the file. Not in chunks, which may have no room.
  std::vector<TimelineRecord> marks_ WEIR_GUARDED_BY(window_mutex_);
  bool has_recorded_ WEIR_GUARDED_BY(window_mutex_) = false;
  mutable Mutex mutex_{LockRank::kTimeline};
  std::condition_variable_any round_ended_;
  std::uint64_t asked_ WEIR_GUARDED_BY(mutex_) = 0;  ///< rounds requested
  std::uint64_t done_ WEIR_GUARDED_BY(mutex_) = 0;   ///< rounds completed
  bool failure_asked_ WEIR_GUARDED_BY(mutex_) = false;
  bool ended_ WEIR_GUARDED_BY(mutex_) = false;
  RecordingResult result_ WEIR_GUARDED_BY(mutex_);
  /// The command for the page of each failure's file. Never changed: the program has its address.
  std::array<std::string, kMostFailures> failure_commands_ WEIR_GUARDED_BY(mutex_);
  std::size_t failure_count_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::timeline
