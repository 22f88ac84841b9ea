#pragma once

// Recorders that write to memory, or lines to a file.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/timeline/sink.hpp"
#include "tools/timeline/recorder/recorder.hpp"

namespace weir::timeline {

/// The input of a writer in memory. Thread-safe.
class Written {
 public:
  void begin(const ProcessInfo& info) {
    const std::lock_guard lock(mutex_);
    told_.info = info;
  }
  void add(std::span<const TimelineRecord> records, const Names& names) {
    const std::lock_guard lock(mutex_);
    for (const TimelineRecord& record : records) {
      records_.push_back(record);
      texts_.emplace_back(names.text(record.name));
      sites_.emplace_back(names.text(record.site));
    }
    calls_.emplace_back(records.begin(), records.end());
  }
  void finish(std::uint64_t lost) {
    const std::lock_guard lock(mutex_);
    ++told_.finished;
    told_.lost = lost;
  }
  struct One {
    TimelineRecord record;
    std::string name;
    std::string site;
  };
  /// Those of a kind, or of all kinds except the recorder's own about threads and itself.
  [[nodiscard]] std::vector<One> of(TimelineKind kind) const {
    return where([kind](const TimelineRecord& record) { return record.kind == kind; });
  }
  [[nodiscard]] std::vector<One> events() const {
    return where([](const TimelineRecord& record) {
      return record.kind != TimelineKind::kThread && record.kind < TimelineKind::kStart;
    });
  }
  [[nodiscard]] std::vector<std::vector<TimelineRecord>> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  [[nodiscard]] std::vector<std::uint64_t> ids() const {
    std::vector<std::uint64_t> ids;
    for (const One& one : of(TimelineKind::kFree)) ids.push_back(one.record.id);
    return ids;
  }
  [[nodiscard]] std::size_t size() const {
    return where([](const auto&) { return true; }).size();
  }
  /// What else the writer was told.
  struct Told {
    ProcessInfo info;
    int finished = 0;
    std::uint64_t lost = 0;
  };
  [[nodiscard]] Told told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  [[nodiscard]] std::vector<One> where(
      const std::function<bool(const TimelineRecord&)>& wanted) const {
    const std::lock_guard lock(mutex_);
    std::vector<One> found;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (wanted(records_[i])) found.push_back({records_[i], texts_[i], sites_[i]});
    }
    return found;
  }

  mutable std::mutex mutex_;
  std::vector<TimelineRecord> records_;
  std::vector<std::string> texts_;
  std::vector<std::string> sites_;
  std::vector<std::vector<TimelineRecord>> calls_;
  Told told_;
};

/// Keeps everything. `before_write` may block or throw.
class MemoryWriter final : public Writer {
 public:
  explicit MemoryWriter(std::shared_ptr<Written> written, std::function<void()> before_write = {})
      : written_(std::move(written)), before_write_(std::move(before_write)) {}
  void begin(const ProcessInfo& info) override { written_->begin(info); }
  void write(std::span<const TimelineRecord> records, const Names& names) override {
    if (before_write_) before_write_();
    written_->add(records, names);
  }
  void flush() override {}
  void finish(std::uint64_t lost) override { written_->finish(lost); }

 private:
  const std::shared_ptr<Written> written_;
  const std::function<void()> before_write_;
};

/// A line for each record: its id. The last line of a complete file is `end LOST`.
class LineWriter final : public Writer {
 public:
  explicit LineWriter(ByteSink& sink) : sink_(sink) {}
  void begin(const ProcessInfo& /*info*/) override { text_ = "[ weir_timeline\n"; }
  void write(std::span<const TimelineRecord> records, const Names& /*names*/) override {
    for (const TimelineRecord& record : records) {
      if (record.kind == TimelineKind::kFree) text_ += std::to_string(record.id) + " whole\n";
    }
  }
  void flush() override {
    sink_.append(text_);
    text_.clear();
  }
  void finish(std::uint64_t lost) override { text_ += "end " + std::to_string(lost) + "\n"; }

 private:
  ByteSink& sink_;
  std::string text_;
};

inline RecorderOutput in_memory(const std::shared_ptr<Written>& written,
                                std::function<void()> before_write = {}) {
  return {.file = nullptr,
          .writer = std::make_unique<MemoryWriter>(written, std::move(before_write))};
}

inline RecorderOutput in_file(const std::string& path) {
  RecorderOutput output;
  output.file = TimelineFile::open("test", path);
  output.writer = std::make_unique<LineWriter>(*output.file);
  return output;
}

/// A recorder that ends with the scope. Rounds happen on request.
class Recording {
 public:
  explicit Recording(RecorderOptions options = {}, std::function<void()> before_write = {})
      : recorder_(
            Recorder::make({}, in_memory(written_, std::move(before_write)), std::move(options))) {}
  ~Recording() { (void)recorder_.finish(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  Recorder* operator->() const { return &recorder_; }
  [[nodiscard]] Recorder& recorder() const { return recorder_; }
  [[nodiscard]] const Written& written() const { return *written_; }

 private:
  const std::shared_ptr<Written> written_ = std::make_shared<Written>();
  Recorder& recorder_;
};

/// Does the work in so many threads at once, each of which has its number. They are joined where
/// the result ends.
template <typename Work>
[[nodiscard]] std::vector<std::jthread> in_threads(std::uint64_t count, const Work& work) {
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < count; ++t) threads.emplace_back([work, t] { work(t); });
  return threads;
}

/// A record that a test recognizes.
inline TimelineRecord event(std::uint64_t id) {
  return {.id = id, .bytes = id * 3, .kind = TimelineKind::kFree};
}

}  // namespace weir::timeline
