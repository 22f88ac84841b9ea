#include "allocator/share/share_file.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <string_view>
#include <system_error>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/time_after.hpp"

namespace weir {
namespace {

// A forked child has its parent's descriptors, and a lock lasts until all of them are closed. So
// the child closes its own at once, or its parent's slot would outlive the parent.
constexpr std::size_t kMostOpen = 64;
constexpr int kUnused = -1;
constexpr int kBeingNoted = -2;

/// A descriptor, and which file it was opened for: the program may have closed it.
struct OpenFile {
  std::atomic<int> descriptor{kUnused};
  std::atomic<dev_t> device{0};
  std::atomic<ino_t> inode{0};
};
constinit std::array<OpenFile, kMostOpen> open_files{};

bool is_file(int descriptor, dev_t device, ino_t inode) noexcept {
  struct stat found {};
  return fstat(descriptor, &found) == 0 && found.st_dev == device && found.st_ino == inode;
}

constinit std::atomic<std::uint64_t> forks_so_far{0};

void close_in_child() noexcept {
  forks_so_far.fetch_add(1);
  for (OpenFile& open : open_files) {
    const int descriptor = open.descriptor.exchange(kUnused);
    if (descriptor >= 0 && is_file(descriptor, open.device, open.inode)) close(descriptor);
  }
}

/// Returns false if too many are open.
bool note_open(int descriptor) noexcept {
  static const int kAtFork = pthread_atfork(nullptr, nullptr, close_in_child);
  struct stat found {};
  if (kAtFork != 0 || fstat(descriptor, &found) != 0) return false;
  for (OpenFile& open : open_files) {
    int unused = kUnused;
    if (!open.descriptor.compare_exchange_strong(unused, kBeingNoted)) continue;
    open.device = found.st_dev;
    open.inode = found.st_ino;
    open.descriptor = descriptor;
    return true;
  }
  return false;
}

void note_closed(int descriptor) noexcept {
  for (OpenFile& open : open_files) {
    int its = descriptor;
    if (open.descriptor.compare_exchange_strong(its, kUnused)) return;
  }
}

[[noreturn]] void refuse_file(const ShareId& id, std::string_view why) {
  throw UsageError("the share '" + id.name + "' is refused: " + id.path() + ": " +
                   std::string(why));
}

[[noreturn]] void refuse_call(const ShareId& id, std::string_view call) {
  const int error = errno;
  refuse_file(id, std::string(call) + ": " + std::generic_category().message(error));
}

bool set_lock(int descriptor, std::size_t byte, short type) noexcept {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(byte);
  range.l_len = 1;
  return fcntl(descriptor, F_OFD_SETLK, &range) == 0;
}

/// Marks the slots from `first` to before `end` that other open files have locked. The kernel names
/// any lock in the range, not the first, so both sides of it are asked again. Returns false if the
/// kernel refuses to answer.
bool find_locked(int descriptor, std::size_t first, std::size_t end,
                 std::bitset<kShareSlots>& locked) noexcept {
  if (first >= end) return true;
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(1 + first);
  range.l_len = static_cast<off_t>(end - first);
  if (fcntl(descriptor, F_OFD_GETLK, &range) != 0) return false;
  if (range.l_type == F_UNLCK) return true;
  // A lock of more than a slot is nonsense, and has all of them. Length 0: to the end of all files.
  const auto begin = std::max<off_t>(range.l_start - 1, static_cast<off_t>(first));
  const auto stop = range.l_len == 0
                        ? static_cast<off_t>(end)
                        : std::min<off_t>(range.l_start - 1 + range.l_len, static_cast<off_t>(end));
  const auto from = static_cast<std::size_t>(begin);
  const auto to = std::max(from + 1, static_cast<std::size_t>(std::max<off_t>(stop, 0)));
  for (std::size_t i = from; i < to; ++i) locked.set(i);
  return find_locked(descriptor, first, from, locked) && find_locked(descriptor, to, end, locked);
}

/// Returns how many bytes from the beginning it read.
std::size_t read_all(int descriptor, ShareLayout& layout) noexcept {
  const ssize_t read = pread(descriptor, &layout, sizeof layout, 0);
  return read < 0 ? 0 : static_cast<std::size_t>(read);
}

/// Returns whether all of it was written. A limit on the size of files (RLIMIT_FSIZE) would end the
/// process by its signal.
bool write_all(int descriptor, const void* bytes, std::size_t size, off_t place) noexcept {
  const FileSizeSignalBlocked blocked;
  return pwrite(descriptor, bytes, size, place) == static_cast<ssize_t>(size);
}

mode_t mode_of(const ShareOwner& owner) noexcept { return owner.is_group ? 0660 : 0600; }

/// Returns what is wrong with the file itself; empty if nothing is.
std::string fault_of_file(const struct stat& found, const ShareOwner& owner) {
  if (!S_ISREG(found.st_mode)) return "it is no file";
  if (owner.is_group ? found.st_gid != owner.id : found.st_uid != owner.id) {
    return std::string("it belongs to another ") + (owner.is_group ? "group" : "user");
  }
  if ((found.st_mode & 07777U) != mode_of(owner)) return "it is open to others, or not to its own";
  if (found.st_nlink > 1) return "it has a second name";
  return {};
}

/// Tries to lock all slots together, for at most `patience`.
bool set_lock_within(int descriptor, short type, std::chrono::nanoseconds patience) noexcept {
  constexpr int kTriesAtOnce = 16;
  const auto until = time_after_now(patience);
  for (int i = 0;; ++i) {
    if (set_lock(descriptor, 0, type)) return true;
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) return false;
    if (i < kTriesAtOnce) continue;
    if (std::chrono::steady_clock::now() >= until) return false;
    const timespec pause{.tv_sec = 0, .tv_nsec = 20'000};
    nanosleep(&pause, nullptr);
  }
}

std::string fault_of_header(const ShareId& id, int descriptor, std::uint64_t file_size) {
  ShareLayout layout;
  const std::size_t read = read_all(descriptor, layout);
  return fault_of(layout.header, read, file_size, id.owner);
}

void check_file(const ShareId& id, int descriptor) {
  constexpr std::chrono::milliseconds kPatience{500};
  struct stat found {};
  if (fstat(descriptor, &found) != 0) refuse_call(id, "stat");
  if (const std::string fault = fault_of_file(found, id.owner); !fault.empty()) {
    refuse_file(id, fault);
  }
  const auto size = static_cast<std::uint64_t>(found.st_size);
  std::string fault = fault_of_header(id, descriptor, size);
  if (fault.empty()) return;
  // Another process may be writing it just now. A file to look into cannot be locked for writing.
  const bool locked = set_lock_within(descriptor, F_RDLCK, kPatience);
  fault = fault_of_header(id, descriptor, size);
  if (locked) (void)set_lock(descriptor, 0, F_UNLCK);
  if (!fault.empty()) refuse_file(id, fault + "; remove it if no program uses it");
}

/// The file has no name until it is complete, so nobody sees a part of it, and a process that is
/// killed here leaves nothing. Returns -1 if another process was faster.
int make_file(const ShareId& id, Bytes budget) {
  const std::string path = id.path();
  const std::string folder = path.substr(0, path.rfind('/'));
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode_of(id.owner));
  if (descriptor < 0) refuse_call(id, "open");
  const auto refuse = [&](std::string_view call) {
    const int error = errno;
    close(descriptor);
    errno = error;
    refuse_call(id, call);
  };
  if (id.owner.is_group && fchown(descriptor, static_cast<uid_t>(-1), id.owner.id) != 0) {
    refuse("chown");
  }
  if (fchmod(descriptor, mode_of(id.owner)) != 0) refuse("chmod");
  ShareLayout layout;
  layout.header = header_of(id.owner, budget);
  if (!write_all(descriptor, &layout, sizeof layout, 0)) refuse("write");
  const std::string self = "/proc/self/fd/" + std::to_string(descriptor);
  if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    return descriptor;
  }
  if (errno != EEXIST) refuse("link");
  close(descriptor);
  return -1;
}

int open_file(const ShareId& id, int flags) noexcept {
  return ::open(id.path().c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

ShareFile::ShareFile(const ShareId& id, int descriptor)
    : id_(id), path_(id.path()), descriptor_(descriptor) {
  struct stat found {};
  if (fstat(descriptor, &found) != 0) return;
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

ShareFile::ShareFile(ShareFile&& other) noexcept
    : id_(std::move(other.id_)),
      path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      forks_(other.forks_),
      device_(other.device_),
      inode_(other.inode_) {}

ShareFile& ShareFile::operator=(ShareFile&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(forks_, other.forks_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

ShareFile::~ShareFile() {
  // A descriptor that was closed after a fork may be another file's by now.
  if (descriptor_ < 0 || forks_ != forks()) return;
  const NoCancel no_cancel;
  const bool is_its = is_open();
  note_closed(descriptor_);
  if (is_its) close(descriptor_);
}

bool ShareFile::is_open() const noexcept { return is_file(descriptor_, device_, inode_); }

void ShareFile::forget_if_closed() noexcept {
  if (descriptor_ < 0 || is_open()) return;
  note_closed(descriptor_);
  descriptor_ = -1;
}

std::uint64_t ShareFile::forks() noexcept { return forks_so_far.load(std::memory_order_relaxed); }

ShareFile ShareFile::open(const ShareId& id, Bytes budget) {
  constexpr int kTries = 16;  // others may remove the file in between
  for (int i = 0; i < kTries; ++i) {
    int descriptor = open_file(id, O_RDWR);
    if (descriptor < 0 && errno == ENOENT) descriptor = make_file(id, budget);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) refuse_call(id, "open");
    if (!note_open(descriptor)) {
      close(descriptor);
      refuse_file(id, "this process has too many shares");
    }
    ShareFile file(id, descriptor);
    check_file(id, descriptor);
    return file;
  }
  refuse_file(id, "it is removed again and again");
}

ShareFile ShareFile::open_to_look(const ShareId& id) {
  const int descriptor = open_file(id, O_RDONLY);
  if (descriptor < 0) refuse_call(id, "open");
  if (!note_open(descriptor)) {
    close(descriptor);
    refuse_file(id, "this process has too many shares");
  }
  ShareFile file(id, descriptor);
  check_file(id, descriptor);
  return file;
}

bool ShareFile::lock(std::chrono::nanoseconds patience) noexcept {
  return is_open() && set_lock_within(descriptor_, F_WRLCK, patience);
}

void ShareFile::unlock() noexcept {
  if (is_open()) (void)set_lock(descriptor_, 0, F_UNLCK);
}

std::optional<std::size_t> ShareFile::take_slot() noexcept {
  for (std::size_t i = 0; i < kShareSlots; ++i) {
    if (set_lock(descriptor_, 1 + i, F_WRLCK)) return i;
  }
  return std::nullopt;
}

void ShareFile::leave_slot(std::size_t index) noexcept {
  if (is_open()) (void)set_lock(descriptor_, 1 + index, F_UNLCK);
}

ShareSlots ShareFile::read() const {
  ShareSlots slots;
  ShareLayout layout;
  const std::size_t read = read_all(descriptor_, layout);
  struct stat found {};
  const bool whole =
      read == sizeof layout && fstat(descriptor_, &found) == 0 &&
      fault_of(layout.header, read, static_cast<std::uint64_t>(found.st_size), id_.owner).empty();
  if (whole) slots.budget = {layout.header.budget};
  std::bitset<kShareSlots> locked;
  slots.is_complete = is_open() && find_locked(descriptor_, 0, kShareSlots, locked);
  for (std::size_t index = 0; index < kShareSlots; ++index) {
    if (!locked.test(index)) continue;
    ShareSlots::Used used{.index = index};
    if (whole) {
      used.slot = slot_of(layout.slots.at(index), slots.budget);
      used.pid = layout.slots.at(index).pid;
    }
    slots.used.push_back(used);
  }
  return slots;
}

bool ShareFile::write(std::size_t index, const ShareRecord& record) noexcept {
  const auto place = static_cast<off_t>(offsetof(ShareLayout, slots) + index * sizeof record);
  return is_open() && write_all(descriptor_, &record, sizeof record, place);
}

std::optional<ShareRecord> ShareFile::record(std::size_t index) const noexcept {
  ShareRecord record;
  const auto place = static_cast<off_t>(offsetof(ShareLayout, slots) + index * sizeof record);
  if (pread(descriptor_, &record, sizeof record, place) != sizeof record) return std::nullopt;
  return record;
}

void ShareFile::write_header(Bytes budget) {
  const ShareHeader header = header_of(id_.owner, budget);
  if (!write_all(descriptor_, &header, sizeof header, 0)) refuse_call(id_, "write");
}

bool ShareFile::is_named() const noexcept {
  struct stat named {};
  return lstat(path_.c_str(), &named) == 0 && named.st_dev == device_ && named.st_ino == inode_;
}

void ShareFile::remove_name() const noexcept {
  if (is_named()) (void)unlink(path_.c_str());
}

}  // namespace weir
