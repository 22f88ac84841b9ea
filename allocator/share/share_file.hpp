#pragma once

// The file of a shared budget, and the kernel's locks on it.
//
// The file is read and written by calls, never mapped, and its locks are the kernel's
// (F_OFD_SETLK), never words in it. So whatever a process writes into it or however it cuts it, no
// other process crashes or waits: a robust mutex keeps its owner and its list in the shared bytes,
// where a wrong one crashes its holder. The kernel ends a process's locks with the process, however
// that ends, and a number that another process gets later means nothing.
//
//   byte 0     whoever reads and changes slots
//   byte 1 + i the process that has slot i, until it detaches or ends

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/share/share_layout.hpp"

namespace weir {

/// The slots that processes hold.
struct ShareSlots {
  /// One slot in use, and what its record says; nothing if it was tampered with.
  struct Used {
    std::size_t index = 0;
    std::optional<ShareSlot> slot{};
    std::uint64_t pid = 0;  ///< as its process wrote it
  };
  std::vector<Used> used{};
  bool is_complete = false;  ///< else the kernel refused to say who holds slots: there may be more
  Bytes budget{};            ///< zero if the header was tampered with, or the file was cut
};

/// An open file. Thread-compatible. A forked child does not have it. A program may close its
/// descriptor and get the number for another file: that is never written, locked or closed here.
class ShareFile {
 public:
  /// How long lock() tries if nothing depends on it: others hold the lock for microseconds.
  static constexpr std::chrono::milliseconds kLockPatience{1};

  /// Returns how many forks lie between this process and the first that opened a file. What was
  /// opened at another number is the parent's. Async-signal-safe.
  [[nodiscard]] static std::uint64_t forks() noexcept;

  /// Opens the file, and creates it with this budget if there is none. Throws UsageError, one line,
  /// for a file of another owner, layout or version, or one that was tampered with.
  [[nodiscard]] static ShareFile open(const ShareId& id, Bytes budget);
  /// Opens a file that exists, to look. Throws Error.
  [[nodiscard]] static ShareFile open_to_look(const ShareId& id);
  ShareFile(ShareFile&& other) noexcept;
  ShareFile& operator=(ShareFile&& other) noexcept;
  ~ShareFile();

  /// Tries to take the lock on all slots, for at most `patience`. False: somebody keeps it.
  [[nodiscard]] bool lock(std::chrono::nanoseconds patience = kLockPatience) noexcept;
  void unlock() noexcept;
  /// Takes a free slot's lock; nothing if no slot is free. Call under the lock.
  [[nodiscard]] std::optional<std::size_t> take_slot() noexcept;
  void leave_slot(std::size_t index) noexcept;

  /// Returns the slots that other open files hold. One moment's only under the lock.
  [[nodiscard]] ShareSlots read() const;
  /// Writes a slot's record. False if the file does not take it.
  bool write(std::size_t index, const ShareRecord& record) noexcept;
  [[nodiscard]] std::optional<ShareRecord> record(std::size_t index) const noexcept;
  /// Writes the header. Call under the lock, with nobody attached.
  void write_header(Bytes budget);
  /// Whether the descriptor is still this file's.
  [[nodiscard]] bool is_open() const noexcept;
  /// Forgets a descriptor that is not this file's any more.
  void forget_if_closed() noexcept;
  /// Whether the file still has its name. Without it, others make a new one.
  [[nodiscard]] bool is_named() const noexcept;
  /// Removes the name. Call under the lock, with nobody else attached.
  void remove_name() const noexcept;

 private:
  ShareFile(const ShareId& id, int descriptor);

  ShareId id_;
  std::string path_;  ///< made beforehand: functions that may not throw need it
  int descriptor_;
  std::uint64_t forks_ = forks();
  dev_t device_ = 0;  ///< with the inode: which file it is
  ino_t inode_ = 0;
};

}  // namespace weir
