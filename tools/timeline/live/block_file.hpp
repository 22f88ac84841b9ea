#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/timeline/live/block.hpp"
#include "tools/timeline/live/folder.hpp"

namespace weir::timeline {

/// The name of a block's file is PID-TIME and this. No two blocks ever have the same.
inline constexpr std::string_view kBlockSuffix = ".live";

/// The block of this process, in a file of its own until the writer's end. Not thread-safe.
class BlockFile {
 public:
  /// In the first of `folders` that takes it. Removes what ended processes left there. Error where
  /// none does. The caller blocks SIGXFSZ, or ignores it.
  BlockFile(const std::vector<LiveFolder>& folders, std::string_view program);
  /// Removes the file. Does nothing in a child of the process that made it.
  ~BlockFile();
  BlockFile(const BlockFile&) = delete;
  BlockFile& operator=(const BlockFile&) = delete;

  void append(const LiveSample& sample) noexcept;
  /// What does not fit is left out.
  void add_device(std::string_view name) noexcept;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  const int pid_;
  std::string path_;
  LiveBlock* block_ = nullptr;
};

}  // namespace weir::timeline
