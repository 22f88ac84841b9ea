#pragma once

// Finds the folder of a user's blocks: in memory, and accessible to that user only.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"

namespace weir::timeline {

/// Whether a process publishes, and where.
struct PublishSetting {
  bool on = true;
  std::string folder;  ///< empty: the user's default folders
};

/// Parses WEIR_PUBLISH: `0`, `1`, or an absolute path. Throws UsageError for anything else.
[[nodiscard]] Setting<PublishSetting> publish_setting(const Environment& environment);

/// A folder for blocks.
struct LiveFolder {
  std::string path;
  std::string parent;  ///< must be owned by the user; empty: no condition
};

/// The folders in which a process of user `uid` publishes; it uses the first that works. Readers
/// read all of them, because they do not know the program's environment.
///   1. the setting's folder, and no other
///   2. $XDG_RUNTIME_DIR/weir
///   3. /run/user/UID/weir
///   4. /dev/shm/weir-UID
[[nodiscard]] std::vector<LiveFolder> live_folders(const PublishSetting& setting,
                                                   const Environment& environment,
                                                   std::uint32_t uid);
/// The folders of all users, for readers with access to them.
[[nodiscard]] std::vector<LiveFolder> live_folders_of_all();

/// An open folder; the destructor closes it.
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

/// Opens a folder for writing, and creates it if missing. Not open, with errno set, if it is a
/// link, owned by another user, or accessible to others.
[[nodiscard]] OpenFolder open_own(const LiveFolder& folder) noexcept;
/// Opens a folder for reading. Not open if it does not exist or is a link.
[[nodiscard]] OpenFolder open_to_read(const LiveFolder& folder) noexcept;

/// Queries the kernel about processes.
struct ProcessState {
  std::uint64_t started = 0;  ///< ticks since the machine's start; detects a reused pid
  std::uint32_t uid = 0;      ///< effective

  friend bool operator==(const ProcessState&, const ProcessState&) = default;
};

/// Returns nothing if the process does not exist or is not visible.
[[nodiscard]] std::optional<ProcessState> find_process(std::uint32_t pid);

/// Returns a process's number in its own pid namespace, as the process itself knows it. Returns
/// nothing if the process does not exist or is not visible.
[[nodiscard]] std::optional<std::uint32_t> own_number(std::uint32_t pid);

/// Returns whether the process is stopped, as by SIGSTOP or a debugger. False if it does not exist.
[[nodiscard]] bool is_stopped(std::uint32_t pid);

/// Returns a variable of the initial environment of a process of this user; nothing if it is not
/// set or not readable.
[[nodiscard]] std::optional<std::string> variable_of(std::uint32_t pid, const std::string& name);

/// The inode of this process's pid namespace; 0 if unknown. Process numbers of other namespaces
/// mean nothing here.
[[nodiscard]] std::uint64_t pid_namespace() noexcept;

/// This process's command line: the program's base name and its arguments.
[[nodiscard]] std::string command_line();

}  // namespace weir::timeline
