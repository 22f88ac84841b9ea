#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "allocator/timeline/sink.hpp"

namespace weir::testing {

/// A sink that keeps everything it receives, while it lives. One at a time. Its clock counts calls.
class ToldTimeline {
 public:
  ToldTimeline() {
    sink().clear();
    detail::timeline_sink.store(&sink());
    detail::timeline_batches.store(&sink());
  }
  ~ToldTimeline() {
    detail::timeline_sink.store(nullptr);
    detail::timeline_batches.store(nullptr);
  }
  ToldTimeline(const ToldTimeline&) = delete;
  ToldTimeline& operator=(const ToldTimeline&) = delete;

  [[nodiscard]] std::vector<TimelineRecord> records() const { return sink().all(); }
  [[nodiscard]] std::vector<TimelineRecord> of(TimelineKind kind) const {
    std::vector<TimelineRecord> found;
    for (const TimelineRecord& record : records()) {
      if (record.kind == kind) found.push_back(record);
    }
    return found;
  }
  [[nodiscard]] std::string text(std::uint32_t number) const { return sink().text(number); }
  [[nodiscard]] std::vector<std::uint32_t> batches() const { return sink().batches(); }
  [[nodiscard]] std::uint64_t failures() const { return sink().failures(); }
  /// Each later stall takes at least this long to write.
  void write_stalls_for(std::chrono::nanoseconds time) { sink().write_stalls_for(time); }
  /// Told now, as pools and schedulers tell it.
  [[nodiscard]] TimelineSink& itself() const { return sink(); }

 private:
  /// Never destroyed: a stream's thread may be in it when a test ends.
  class Sink final : public TimelineSink {
   public:
    void clear() {
      const std::lock_guard lock(mutex_);
      records_.clear();
      batches_.clear();
      failures_ = 0;
      write_stalls_for({});
    }
    void write_stalls_for(std::chrono::nanoseconds time) { stall_time_.store(time); }
    std::vector<TimelineRecord> all() {
      const std::lock_guard lock(mutex_);
      return records_;
    }
    std::string text(std::uint32_t number) {
      const std::lock_guard lock(mutex_);
      return number == 0 ? std::string() : texts_.at(number - 1);
    }
    std::vector<std::uint32_t> batches() {
      const std::lock_guard lock(mutex_);
      return batches_;
    }
    std::uint64_t failures() {
      const std::lock_guard lock(mutex_);
      return failures_;
    }

    void write(const TimelineRecord& record) noexcept override {
      if (record.kind == TimelineKind::kStall) std::this_thread::sleep_for(stall_time_.load());
      const TimelineWork work = TimelineScope::current();
      TimelineRecord kept = record;
      if (kept.end == 0) kept.end = now();
      if (kept.begin == 0) kept.begin = kept.end;
      if (kept.batch == 0) kept.batch = work.batch;
      if (kept.site == 0 && work.file != nullptr) kept.site = site(work.file, work.line);
      const std::lock_guard lock(mutex_);
      records_.push_back(kept);
    }
    std::uint32_t name(std::string_view text) noexcept override {
      if (text.empty()) return 0;
      const std::lock_guard lock(mutex_);
      const auto [place, added] =
          numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(texts_.size() + 1));
      if (added) texts_.emplace_back(text);
      return place->second;
    }
    std::uint32_t site(const char* file, int line) noexcept override {
      return *file == '\0' ? 0 : name(std::string(file) + ":" + std::to_string(line));
    }
    std::uint64_t now() const noexcept override { return ++ticks_; }
    std::uint64_t at(std::int64_t steady_ns) const noexcept override {
      return static_cast<std::uint64_t>(steady_ns);
    }
    const char* note_failure() noexcept override {
      const std::lock_guard lock(mutex_);
      ++failures_;
      return "the command";
    }
    void note_batch(std::uint32_t number) noexcept override {
      const std::lock_guard lock(mutex_);
      batches_.push_back(number);
    }

   private:
    std::mutex mutex_;
    std::vector<TimelineRecord> records_;
    std::map<std::string, std::uint32_t> numbers_;
    std::deque<std::string> texts_;
    std::vector<std::uint32_t> batches_;
    std::uint64_t failures_ = 0;
    mutable std::atomic<std::uint64_t> ticks_{0};
    std::atomic<std::chrono::nanoseconds> stall_time_{};
  };
  static Sink& sink() {
    static auto* const kSink = new Sink;
    return *kSink;
  }
};

}  // namespace weir::testing
