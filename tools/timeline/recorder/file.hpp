#pragma once

// The file that a recording is written to.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "allocator/base/output_place.hpp"
#include "allocator/base/setting.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Whether there is a file at `path` that a recording may replace: an empty one, or one that begins
/// as a timeline of ours does, compressed or not.
[[nodiscard]] bool is_timeline_or_empty(const std::string& path);

/// Opens a new file, or replaces an old timeline, and appends to it. A process that replaces keeps
/// the name for itself until it ends. Not thread-safe.
class TimelineFile final : public ByteSink {
 public:
  /// `path` ends as parse_timeline_file wants it; `source` is where it came from. Where another
  /// process is writing to that name, this one gets its process number put into it, and note()
  /// says so. UsageError for a name that cannot be written, and for a file that is none of ours.
  [[nodiscard]] static std::unique_ptr<TimelineFile> open(const std::string& source,
                                                          const std::string& path);
  ~TimelineFile() override;
  TimelineFile(const TimelineFile&) = delete;
  TimelineFile& operator=(const TimelineFile&) = delete;

  /// Appends all of it. Where there is no room, the file keeps what it had before, and failure()
  /// says why.
  void append(std::string_view bytes) noexcept override;
  /// Empty as long as all is well.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// A line for people; mostly empty.
  [[nodiscard]] const std::string& note() const noexcept { return note_; }
  /// Where the recording is to be found.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] Format format() const noexcept;

  /// The recording is complete: compresses it if its name asks for that. `advance` is called now
  /// and then. The file stays as it is, and failure() says why, where that does not work.
  void complete(const std::function<void()>& advance);
  /// Others may write to the name from here on.
  void close() noexcept;
  /// For the child of a fork: the file is the parent's.
  void leave_to_parent() noexcept;

 private:
  TimelineFile(int file, std::string path, bool packs);

  /// Whether the descriptor is that of the file, if need be a new one.
  [[nodiscard]] bool find_again() noexcept;

  int file_;
  const std::optional<FileIdentity> identity_;
  const std::string path_;
  const bool packs_;  ///< it is compressed at the end
  std::uint64_t size_ = 0;
  std::string failure_;
  std::string note_;
};

/// Writes a whole file beside `path` and puts it in its place. Returns why it cannot; empty where
/// all is well.
[[nodiscard]] std::string write_whole(const std::string& path, std::string_view bytes);

}  // namespace weir::timeline
