#include "allocator/log/allocation_log.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <system_error>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/output_place.hpp"
#include "allocator/base/setting.hpp"

namespace weir {
namespace {

std::uint64_t unix_ns() noexcept {
  using Clock = std::chrono::system_clock;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
          .count());
}

/// Threads that end look here whether their log still exists, and leave their ring.
struct OpenLogs {
  Mutex mutex{LockRank::kLog};
  std::vector<AllocationLog*> logs WEIR_GUARDED_BY(mutex);
};
OpenLogs& open_logs() {
  static auto* const kLogs = new OpenLogs;  // threads may end after statics are destroyed
  return *kLogs;
}

bool is_log_or_empty(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::uint64_t magic = 0;
  const ssize_t got = read(file, &magic, sizeof magic);
  close(file);
  return got == 0 || (got == sizeof magic && magic == AllocationLogHeader::kMagic);
}

/// Copies a whole chunk; on failure, makes readers skip the written part.
bool copy_to_file(int file, const AllocationRecord* chunk, std::int64_t offset) noexcept {
  constexpr auto kSize = static_cast<ssize_t>(AllocationLog::kChunk.count);
  const FileSizeSignalBlocked blocked;
  const NoCancel no_cancel;
  const ssize_t written = pwrite(file, chunk, AllocationLog::kChunk.count, offset);
  if (written == kSize) return true;
  const std::uint64_t nothing = 0;  // overwrites the first record's sequence
  // These bytes were just written, so the disk has room.
  if (written > 0) (void)!pwrite(file, &nothing, sizeof nothing, offset);
  return false;
}

std::atomic<std::uint64_t> last_serial{0};
std::atomic<std::uint32_t> last_thread{0};

void warn_of_loss(const std::string& path, std::uint64_t lost, Bytes limit) noexcept {
  if (lost == 0) return;
  try {
    log(LogLevel::kWarn,
        "allocation log '" + path + "': " + std::to_string(lost) +
            " events are lost: the disk is full, or the log has reached its limit of " +
            format_bytes(limit));
  } catch (const std::bad_alloc&) {
    log(LogLevel::kWarn, "an allocation log has lost events");  // the file has the count
  }
}

}  // namespace

struct AllocationLog::Cursor {
  std::uint64_t serial = 0;  ///< of the ring's log
  Ring ring;
  std::uint32_t thread = 0;

  /// Leaves the ring to other threads if the log still exists.
  void leave() noexcept {
    if (serial == 0) return;
    OpenLogs& open = open_logs();
    const Lock lock(open.mutex);
    for (AllocationLog* log : open.logs) {
      if (log->serial_.load(std::memory_order_relaxed) != serial) continue;
      const Lock own(log->mutex_);
      try {
        if (ring.begin != nullptr) log->left_.push_back(ring);
      } catch (const std::bad_alloc&) {
        break;  // its records stay, but no thread reuses it
      }
    }
    serial = 0;
    ring = {};
  }
  ~Cursor() { leave(); }
};

thread_local AllocationLog::Cursor AllocationLog::cursor;

void AllocationLog::stop_in_child() noexcept {
  // The parent still writes to the pages. Takes no lock: one held by another thread during the fork
  // stays locked, and the child has no other thread.
  const auto stop = []() WEIR_NO_THREAD_SAFETY_ANALYSIS {
    for (AllocationLog* log : open_logs().logs) log->serial_ = 0;
  };
  stop();
  cursor.serial = 0;
  cursor.ring = {};
}

AllocationLog::AllocationLog(const std::string& option, const std::string& path, Bytes limit)
    : serial_(++last_serial), path_(path), limit_(limit) {
  const FileSizeSignalBlocked blocked;
  // Renames a temporary file at the end, so that a failure replaces no log.
  const OutputPlace place = find_output(path);
  const std::string beside =
      place.path + "." + std::to_string(getpid()) + "-" + std::to_string(serial_) + ".new";
  const auto fail = [&](int error) {
    if (file_ >= 0) {
      close(file_);
      (void)unlink(beside.c_str());
    }
    refuse(option, path,
           "a regular file that can be written (" + std::generic_category().message(error) + ")");
  };
  if (place.error != 0) fail(place.error);
  // An old log is replaced, not truncated: a process that still writes to it would crash. Nothing
  // else is replaced.
  if (place.special || (place.identity && !is_log_or_empty(place.path))) {
    refuse(option, path, "a new file, or an allocation log that it replaces");
  }
  file_ = open(beside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) fail(errno);
  // Allocate disk space before mapping: a store to a page without it raises SIGBUS.
  const int error = posix_fallocate(file_, 0, AllocationLogHeader::kBytes);
  if (error != 0) fail(error);
  void* page =
      mmap(nullptr, AllocationLogHeader::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (page == MAP_FAILED) fail(errno);
  header_ = ::new (page) AllocationLogHeader;
  header_->chunk_bytes = static_cast<std::uint32_t>(kChunk.count);
  header_->unix_ns = unix_ns();
  header_->began_ticks = clock_.began();
  header_->ns_per_tick = clock_.ns_per_tick();
  size_ = {AllocationLogHeader::kBytes};
  if (rename(beside.c_str(), place.path.c_str()) != 0) {
    const int why = errno;
    munmap(page, AllocationLogHeader::kBytes);
    fail(why);
  }

  static const int kRegistered = pthread_atfork(nullptr, nullptr, [] { stop_in_child(); });
  (void)kRegistered;
  OpenLogs& open = open_logs();
  const Lock lock(open.mutex);
  open.logs.push_back(this);
}

AllocationLog::~AllocationLog() {
  // A lock held by another thread during the fork stays locked. The child ends soon, so leak.
  if (serial_.load(std::memory_order_relaxed) == 0) return;
  {
    OpenLogs& open = open_logs();
    const Lock lock(open.mutex);
    std::erase(open.logs, this);
  }
  complete();
  const Lock lock(mutex_);
  for (void* ring : rings_) munmap(ring, kChunk.count);
  munmap(header_, AllocationLogHeader::kBytes);
  close(file_);
}

void AllocationLog::complete() noexcept {
  header_->ns_per_tick = clock_.ns_per_tick();
  header_->closed = 1;
  warn_of_loss(path_, lost(), limit_);
}

std::atomic<AllocationLog*> AllocationLog::last_of_process{nullptr};

AllocationLog& AllocationLog::of_process(const std::string& option, const std::string& path,
                                         Bytes limit) {
  struct Logs {
    Mutex mutex{LockRank::kOrder};
    std::map<std::string, std::unique_ptr<AllocationLog>> by_path WEIR_GUARDED_BY(mutex);
  };
  // Logs stay open: pools and threads may outlive every static object. At exit they are marked as
  // complete, without a lock, since a forked child exits here too.
  static auto* const kLogs = new Logs;
  static const struct AtExit {
    ~AtExit() {
      for (AllocationLog* log = last_of_process; log != nullptr; log = log->older_) {
        if (log->serial_ != 0) log->complete();
      }
    }
  } kAtExit;
  const Lock lock(kLogs->mutex);
  std::unique_ptr<AllocationLog>& log = kLogs->by_path[path];
  if (log == nullptr) {
    log = std::make_unique<AllocationLog>(option, path, limit);
    log->older_ = last_of_process;
    last_of_process = log.get();
  }
  return *log;
}

std::uint16_t AllocationLog::add_pool(Bytes budget) noexcept {
  const auto pool = static_cast<std::uint16_t>(pools_.fetch_add(1) + 1);
  write({.sequence = 1, .bytes = budget.count, .pool = pool, .event = AllocationEvent::kPool});
  return pool;
}

std::uint64_t AllocationLog::lost() const noexcept {
  return header_->lost.load(std::memory_order_relaxed);
}

void AllocationLog::write(AllocationRecord record) noexcept {
  Cursor& mine = cursor;
  if (mine.serial != serial_.load(std::memory_order_relaxed) || mine.ring.next == mine.ring.end) {
    if (!make_room(mine)) return;
  }
  AllocationRecord& place = *mine.ring.next++;
  record.time = clock_.now();
  record.thread = mine.thread;
  // The sequence stays zero until the rest is stored: a reader always finds a whole record or the
  // end of the chunk, even after a crash.
  const std::uint64_t sequence = std::exchange(record.sequence, 0);
  std::atomic_ref(place.sequence).store(0, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  place = record;
  std::atomic_ref(place.sequence).store(sequence, std::memory_order_release);
}

bool AllocationLog::make_room(Cursor& mine) noexcept {
  const std::uint64_t serial = serial_.load(std::memory_order_relaxed);
  if (serial == 0) return false;  // a forked child
  if (mine.serial != serial) {
    mine.leave();
    if (mine.thread == 0) mine.thread = ++last_thread;
    const Lock lock(mutex_);
    mine.ring = new_ring();
    mine.serial = serial;
  }
  if (mine.ring.begin == nullptr) {
    header_->lost.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  if (mine.ring.next == mine.ring.end) drain(mine.ring);
  return true;
}

AllocationLog::Ring AllocationLog::new_ring() {
  if (!left_.empty()) {
    const Ring ring = left_.back();
    left_.pop_back();
    return ring;
  }
  try {
    rings_.reserve(rings_.size() + 1);
  } catch (const std::bad_alloc&) {
    return {};
  }
  const FileSizeSignalBlocked blocked;
  const std::int64_t offset = take_chunk();
  const auto size = static_cast<off_t>(kChunk.count);
  if (offset < 0 || posix_fallocate(file_, offset, size) != 0) return {};
  void* memory =
      mmap(nullptr, kChunk.count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_, offset);
  if (memory == MAP_FAILED) return {};
  rings_.push_back(memory);
  auto* const first = static_cast<AllocationRecord*>(memory);
  return {first, first, first + kChunk.count / sizeof(AllocationRecord)};
}

void AllocationLog::drain(Ring& ring) noexcept {
  header_->ns_per_tick = clock_.ns_per_tick();
  std::int64_t offset = -1;
  {
    const Lock lock(mutex_);
    offset = take_chunk();
  }
  if (offset < 0 || !copy_to_file(file_, ring.begin, offset)) {
    // Otherwise a reader would count lost records as written, too.
    header_->lost.fetch_add(static_cast<std::uint64_t>(ring.end - ring.begin));
    std::memset(static_cast<void*>(ring.begin), 0, kChunk.count);
  }
  ring.next = ring.begin;  // records not yet overwritten appear twice; readers drop duplicates
}

std::int64_t AllocationLog::take_chunk() {
  if (size_ + kChunk > limit_) return -1;
  const auto offset = static_cast<std::int64_t>(size_.count);
  size_ += kChunk;
  return offset;
}

}  // namespace weir
