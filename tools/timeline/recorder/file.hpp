#pragma once

// The file of a recording.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "allocator/base/output_place.hpp"
#include "allocator/base/setting.hpp"
#include "tools/timeline/files/formats.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Returns whether a recording may replace the file at `path`: it is empty, or it begins like a
/// timeline of ours, compressed or not.
[[nodiscard]] bool is_timeline_or_empty(const std::string& path);

/// Creates a file, or replaces an old timeline, and appends to it. A process that replaces a file
/// reserves the name until it ends. Not thread-safe.
class TimelineFile final : public ByteSink {
 public:
  /// `path` ends as parse_timeline_file requires; `source` is where it came from. If another
  /// process is writing to that name, adds this process's number to the name and sets note().
  /// Throws UsageError if the name cannot be written or belongs to another kind of file.
  [[nodiscard]] static std::unique_ptr<TimelineFile> open(const std::string& source,
                                                          const std::string& path);
  ~TimelineFile() override;
  TimelineFile(const TimelineFile&) = delete;
  TimelineFile& operator=(const TimelineFile&) = delete;

  /// Appends all bytes. If there is no room, the file keeps its previous contents, and failure()
  /// has the reason.
  void append(std::string_view bytes) noexcept override;
  /// Empty unless an append failed.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// A line for people; usually empty.
  [[nodiscard]] const std::string& note() const noexcept { return note_; }
  /// The path of the recording.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// The format of the name that was asked for.
  [[nodiscard]] const FileFormat& format() const noexcept { return *format_.format; }

  /// Completes the recording: compresses it if its name requires that. Calls `advance` now and
  /// then. On failure the file stays unchanged, and failure() has the reason.
  void complete(const std::function<void()>& advance);
  /// Closes the file and releases its name for other processes.
  void close() noexcept;
  /// For a forked child: leaves the file to the parent.
  void leave_to_parent() noexcept;

 private:
  TimelineFile(int file, std::string path, NamedFormat format);

  /// Returns whether the descriptor still refers to the file; opens a new one if necessary.
  [[nodiscard]] bool find_again() noexcept;

  int file_;
  const std::optional<FileIdentity> identity_;
  const std::string path_;
  const NamedFormat format_;
  std::uint64_t size_ = 0;
  std::string failure_;
  std::string note_;
};

/// Writes a complete file beside `path` and moves it into place. Returns an empty text, or the
/// reason for a failure.
[[nodiscard]] std::string write_whole(const std::string& path, std::string_view bytes);

}  // namespace weir::timeline
