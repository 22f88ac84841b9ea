#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/timeline/live/block.hpp"
#include "tools/timeline/live/budget_request.hpp"
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

  /// A sample, and the figures of devices at its time.
  void append(const LiveSample& sample, const LiveDeviceSample& devices = {}) noexcept;
  /// What does not fit is left out.
  void add_device(std::string_view name) noexcept;
  /// What is asked of the process, once; it is to be answered before the next call. Any bytes may
  /// be in it.
  [[nodiscard]] std::optional<BudgetAsk> next_request() noexcept;
  /// Answers what next_request gave last.
  void answer(const BudgetAnswer& answer) noexcept;
  /// Whether the file is as it was made: at its place, the user's alone, and whole.
  [[nodiscard]] bool is_intact() const noexcept;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  const int pid_;
  std::string path_;
  LiveBlock* block_ = nullptr;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  // What the file says of these is not asked: others may have written there.
  std::uint64_t count_ = 0;
  std::uint32_t device_count_ = 0;
  std::uint64_t serial_ = 0;  ///< of the last request
};

}  // namespace weir::timeline
