#include "tools/timeline/live/asker.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <thread>

#include "allocator/base/error.hpp"
#include "allocator/base/time_after.hpp"
#include "tools/timeline/live/reader.hpp"

namespace weir::timeline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{10};

OpenFolder open_block(const LiveProgram& program) {
  const OpenFolder folder = open_to_read(program.folder);
  return OpenFolder(openat(folder.descriptor(), program.file.c_str(),
                           O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool is_private(const struct stat& found) noexcept {
  return S_ISREG(found.st_mode) && (found.st_mode & 07777U) == 0600U && found.st_uid == geteuid() &&
         found.st_nlink == 1 && found.st_size == static_cast<off_t>(sizeof(LiveBlock));
}

bool read_whole(int file, void* place, std::size_t size, std::size_t offset) noexcept {
  return pread(file, place, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

/// Returns whether the file is the block that was found, and its process runs.
bool is_of(int file, const LiveProgram& program) {
  const auto block = std::make_unique<LiveBlock>();
  if (!read_whole(file, block.get(), sizeof *block, 0)) return false;
  return kind_of(*block, sizeof *block, sizeof *block) == BlockKind::kBlock &&
         block->pid == program.pid && block->started == program.started && is_locked_block(file);
}

/// Returns a number other than zero and the last request's.
std::uint64_t draw_serial() noexcept {
  std::uint64_t serial = 0;
  while (getrandom(&serial, sizeof serial, 0) != sizeof serial || serial == 0) continue;
  return serial;
}

}  // namespace

Asker::Asker(const LiveProgram& program) : file_(open_block(program)) {
  struct stat found {};
  const std::string path = program.folder.path + "/" + program.file;
  if (!file_.is_open() || fstat(file_.descriptor(), &found) != 0) {
    throw Error("process " + std::to_string(program.pid) + " cannot be asked: " + path +
                " cannot be opened");
  }
  if (!is_private(found)) {
    throw Error("process " + std::to_string(program.pid) + " is not asked: " + path +
                " is accessible to other users, or truncated");
  }
  if (found.st_ino != program.inode) {
    throw Error("process " + std::to_string(program.pid) + " is not asked: " + path +
                " was replaced by another file");
  }
  if (!is_of(file_.descriptor(), program)) {
    throw Error("process " + std::to_string(program.pid) + " has ended");
  }
}

Asker::LockResult Asker::lock(bool wanted) const noexcept {
  struct flock range {};
  range.l_type = wanted ? F_WRLCK : F_UNLCK;
  range.l_whence = SEEK_SET;
  range.l_start = offsetof(LiveBlock, request);
  range.l_len = sizeof(LiveRequest);
  if (fcntl(file_.descriptor(), F_OFD_SETLK, &range) == 0) return LockResult::kLocked;
  return errno == EAGAIN || errno == EACCES ? LockResult::kTaken : LockResult::kFailed;
}

bool Asker::write(const LiveRequest& request) const noexcept {
  const auto put = [this](std::uint64_t word, std::size_t offset) {
    return pwrite(file_.descriptor(), &word, sizeof word,
                  static_cast<off_t>(offsetof(LiveBlock, request) + offset)) == sizeof word;
  };
  return put(request.begin, offsetof(LiveRequest, begin)) &&
         put(request.device, offsetof(LiveRequest, device)) &&
         put(request.budget, offsetof(LiveRequest, budget)) &&
         put(request.end, offsetof(LiveRequest, end));
}

std::optional<BudgetAnswer> Asker::answer_to(std::uint64_t serial) const noexcept {
  constexpr std::size_t kPlace = offsetof(LiveBlock, answer);
  LiveAnswer text;
  const int file = file_.descriptor();
  // Read the serial first: it is written after the rest.
  if (!read_whole(file, &text.serial, sizeof text.serial, kPlace) || text.serial != serial) {
    return std::nullopt;
  }
  if (!read_whole(file, &text, sizeof text, kPlace)) return std::nullopt;
  return answer_of(text);
}

Asker::Result Asker::ask(const BudgetAsk& ask, std::chrono::nanoseconds patience) {
  const Clock::time_point deadline = time_after_now(patience);
  const auto is_late = [deadline] { return Clock::now() >= deadline; };
  for (;;) {
    const LockResult locked = lock(true);
    if (locked == LockResult::kLocked) break;
    if (locked == LockResult::kFailed) return {.failure = Failure::kBroken};
    if (!is_locked_block(file_.descriptor())) return {.failure = Failure::kEnded};
    if (is_late()) return {.failure = Failure::kBusy};
    std::this_thread::sleep_for(kPause);
  }
  const std::uint64_t serial = draw_serial();
  const LiveRequest request{
      .begin = serial, .device = ask.device, .budget = ask.budget.count, .end = serial};
  Result result;
  bool wrote = write(request);
  if (!wrote) result.failure = Failure::kBroken;
  while (wrote && !result.answer) {
    result.answer = answer_to(serial);
    if (result.answer) break;
    if (!is_locked_block(file_.descriptor())) {
      result.failure = Failure::kEnded;
      break;
    }
    if (is_late()) break;
    std::this_thread::sleep_for(kPause);
  }
  (void)write({});
  // The program may have taken the request while this gave up.
  if (!result.answer) result.answer = answer_to(serial);
  (void)lock(false);
  return result;
}

}  // namespace weir::timeline
