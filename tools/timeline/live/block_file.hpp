#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/timeline/live/block.hpp"
#include "tools/timeline/live/folder.hpp"

namespace weir::timeline {

/// A block's file name is PID-TIME and this suffix. Names are never reused.
inline constexpr std::string_view kBlockSuffix = ".live";

/// This process's block, in a file that lives as long as this. Not thread-safe.
class BlockFile {
 public:
  /// Makes the file in the first of `folders` that accepts it, and removes files of ended processes
  /// there. Throws Error if none does. The caller must block or ignore SIGXFSZ.
  BlockFile(const std::vector<LiveFolder>& folders, std::string_view program);
  /// Removes the file. Does nothing in a forked child.
  ~BlockFile();
  BlockFile(const BlockFile&) = delete;
  BlockFile& operator=(const BlockFile&) = delete;

  /// Appends a sample and the device figures of the same time.
  void append(const LiveSample& sample, const LiveDeviceSample& devices = {}) noexcept;
  /// Ignores devices beyond the limit.
  void add_device(std::string_view name) noexcept;
  /// Returns each request once; answer it before the next call. It may contain any bytes.
  [[nodiscard]] std::optional<BudgetAsk> next_request() noexcept;
  /// Answers the last request of next_request.
  void answer(const BudgetAnswer& answer) noexcept;
  /// Returns whether the file is unchanged: in its place, owned by the user alone, and complete.
  [[nodiscard]] bool is_intact() const noexcept;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  const int pid_;
  std::string path_;
  LiveBlock* block_ = nullptr;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  // Kept here rather than read from the file, which others may have overwritten.
  std::uint64_t count_ = 0;
  std::uint32_t device_count_ = 0;
  std::uint64_t serial_ = 0;  ///< of the last request
};

}  // namespace weir::timeline
