#pragma once

// Where the blocks of a user's processes lie: a folder in memory that only the user can open.

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"

namespace weir::timeline {

/// Whether a process publishes, and where.
struct PublishSetting {
  bool on = true;
  std::string folder;  ///< empty: the user's
};

/// WEIR_PUBLISH: `0`, `1`, or an absolute path. UsageError for anything else.
[[nodiscard]] Setting<PublishSetting> publish_setting(const Environment& environment);

/// A folder that blocks may lie in.
struct LiveFolder {
  std::string path;
  std::string parent;  ///< must be the user's own; empty: need not be
};

/// Where a process of user `uid` publishes: the first of these that can be used. Those who look
/// read them all: what a program has in its environment is not known.
///   1. the setting's folder, and no other
///   2. $XDG_RUNTIME_DIR/weir
///   3. /run/user/UID/weir
///   4. /dev/shm/weir-UID
[[nodiscard]] std::vector<LiveFolder> live_folders(const PublishSetting& setting,
                                                   const Environment& environment,
                                                   std::uint32_t uid);
/// The same of every user, for whoever may open all of them.
[[nodiscard]] std::vector<LiveFolder> live_folders_of_all();

/// An open folder. Closes at its end.
class OpenFolder {
 public:
  explicit OpenFolder(int descriptor) noexcept : descriptor_(descriptor) {}
  ~OpenFolder();
  OpenFolder(OpenFolder&& other) noexcept;
  OpenFolder& operator=(OpenFolder&&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

/// Opens a folder to write to, and makes it where it is missing. Not open, with errno set, where it
/// is a link, another user's, or open to others.
[[nodiscard]] OpenFolder open_own(const LiveFolder& folder) noexcept;
/// Opens a folder to read. Not open where there is none, or it is a link.
[[nodiscard]] OpenFolder open_to_read(const LiveFolder& folder) noexcept;

}  // namespace weir::timeline
