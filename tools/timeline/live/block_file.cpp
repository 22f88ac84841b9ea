#include "tools/timeline/live/block_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <system_error>

#include "allocator/base/error.hpp"
#include "allocator/base/utf8.hpp"
#include "tools/timeline/live/folder.hpp"
#include "tools/timeline/live/reader.hpp"

namespace weir::timeline {
namespace {

// Shared memory is a mapping of a file that others may truncate. The kernel copies to and from it,
// so that missing memory is an error and not a signal.

/// Copies `size` bytes to `place` in a shared mapping. Uses a plain copy if the system forbids the
/// kernel's copy (a sandbox).
void store_shared(void* place, const void* from, std::size_t size) noexcept {
  const iovec own{.iov_base = const_cast<void*>(from), .iov_len = size};
  const iovec shared{.iov_base = place, .iov_len = size};
  // A process may always write to itself, but a sandbox may forbid the call.
  if (process_vm_writev(getpid(), &own, 1, &shared, 1, 0) >= 0) return;
  if (errno == ENOSYS || errno == EPERM) std::memcpy(place, from, size);
}

/// Copies `size` bytes from `place`. Returns false if some are missing, or if the system forbids
/// the copy.
bool load_shared(void* to, const void* place, std::size_t size) noexcept {
  const iovec own{.iov_base = to, .iov_len = size};
  const iovec shared{.iov_base = const_cast<void*>(place), .iov_len = size};
  return process_vm_readv(getpid(), &own, 1, &shared, 1, 0) == static_cast<ssize_t>(size);
}

/// Throws Error if a system call failed.
void require(bool succeeded, std::string_view call) {
  if (succeeded) return;
  const int error = errno;
  throw Error(std::string(call) + ": " + std::generic_category().message(error));
}

/// Truncates at a UTF-8 character boundary. Keeps `place` terminated by a zero.
template <std::size_t Size>
void copy_text(std::array<char, Size>& place, std::string_view text) noexcept {
  std::ranges::copy(cut_between_characters(text, Size - 1), place.begin());
}

LiveBlock first_block(std::string_view program) {
  LiveBlock block{.magic = kLiveMagic,
                  .version = kLiveVersion,
                  .size = sizeof(LiveBlock),
                  .pid = static_cast<std::uint32_t>(getpid()),
                  .pid_namespace = pid_namespace()};
  const auto self = find_process(block.pid);
  if (!self) throw Error("/proc does not list this process");
  block.started = self->started;
  copy_text(block.program, program);
  return block;
}

std::string file_name() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::to_string(getpid()) + "-" + std::to_string(now.tv_sec * 1'000'000'000 + now.tv_nsec) +
         std::string(kBlockSuffix);
}

/// A new file: its mapping and its identity.
struct Made {
  LiveBlock* block;
  dev_t device;
  ino_t inode;
};

/// The file has no name until it is complete and locked. So readers never see a partial file, and a
/// process that is killed here leaves nothing.
Made make_file(const OpenFolder& folder, const std::string& name, const LiveBlock& contents) {
  const OpenFolder file(openat(folder.descriptor(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  require(file.is_open(), "open");
  struct stat found {};
  require(fstat(file.descriptor(), &found) == 0, "stat");
  // Allocates all pages now: a store into a page that the system cannot provide would raise SIGBUS.
  const int error = posix_fallocate(file.descriptor(), 0, sizeof(LiveBlock));
  errno = error;
  require(error == 0, "fallocate");
  require(flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0, "flock");
  void* const mapped =
      mmap(nullptr, sizeof(LiveBlock), PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  require(mapped != MAP_FAILED, "mmap");
  const auto unmap = [](void* address) { munmap(address, sizeof(LiveBlock)); };
  std::unique_ptr<void, decltype(unmap)> armed(mapped, unmap);
  require(madvise(mapped, sizeof(LiveBlock), MADV_DONTFORK) == 0, "madvise");
  auto* const block = new (mapped) LiveBlock(contents);
  const std::string self = "/proc/self/fd/" + std::to_string(file.descriptor());
  require(linkat(AT_FDCWD, self.c_str(), folder.descriptor(), name.c_str(), AT_SYMLINK_FOLLOW) == 0,
          "link");
  (void)armed.release();
  return {block, found.st_dev, found.st_ino};
}

}  // namespace

BlockFile::BlockFile(const std::vector<LiveFolder>& folders, std::string_view program)
    : pid_(getpid()) {
  const LiveBlock contents = first_block(program);
  const std::string name = file_name();
  std::string problems;
  for (const LiveFolder& folder : folders) {
    try {
      const OpenFolder open = open_own(folder);
      require(open.is_open(), "open");
      remove_ended(folder);
      const Made made = make_file(open, name, contents);
      block_ = made.block;
      device_ = made.device;
      inode_ = made.inode;
      path_ = folder.path + "/" + name;
      return;
    } catch (const Error& error) {
      problems += (problems.empty() ? "" : ", ") + folder.path + ": " + error.what();
    }
  }
  throw Error(problems);
}

BlockFile::~BlockFile() {
  if (getpid() != pid_) return;  // a child has no mapping, and the addresses may be used otherwise
  unlink(path_.c_str());
  munmap(block_, sizeof(LiveBlock));
}

void BlockFile::append(const LiveSample& sample, const LiveDeviceSample& devices) noexcept {
  store_shared(&block_->samples[count_ % kLiveSamples], &sample, sizeof sample);
  store_shared(&block_->device_samples[count_ % kLiveDeviceSamples], &devices, sizeof devices);
  ++count_;
  store_shared(&block_->count, &count_, sizeof count_);
}

void BlockFile::add_device(std::string_view name) noexcept {
  if (device_count_ == kLiveDevices) return;
  std::array<char, sizeof block_->devices[0]> text{};
  copy_text(text, name);
  store_shared(&block_->devices[device_count_], text.data(), text.size());
  ++device_count_;
  store_shared(&block_->device_count, &device_count_, sizeof device_count_);
}

std::optional<BudgetAsk> BlockFile::next_request() noexcept {
  LiveRequest request;
  const LiveRequest* const there = &block_->request;
  const auto load = [](std::uint64_t& word, const std::uint64_t& from) {
    return load_shared(&word, &from, sizeof word);
  };
  // In the opposite order to the asker's writes.
  if (!load(request.end, there->end) || request.end == 0 || request.end == serial_) {
    return std::nullopt;
  }
  if (!load(request.budget, there->budget) || !load(request.device, there->device) ||
      !load(request.begin, there->begin)) {
    return std::nullopt;
  }
  const std::optional<BudgetAsk> ask = ask_of(request, serial_);
  if (ask) serial_ = request.end;
  return ask;
}

void BlockFile::answer(const BudgetAnswer& answer) noexcept {
  const LiveAnswer text{.serial = serial_,
                        .code = static_cast<std::uint64_t>(answer.code),
                        .before = answer.before.count,
                        .after = answer.after.count,
                        .used = answer.used.count,
                        .total = answer.total.count};
  constexpr std::size_t kBody = offsetof(LiveAnswer, code);
  LiveAnswer* const place = &block_->answer;
  store_shared(&place->code, &text.code, sizeof text - kBody);
  store_shared(&place->serial, &text.serial, sizeof text.serial);
}

bool BlockFile::is_intact() const noexcept {
  struct stat found {};
  return lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_ &&
         found.st_uid == geteuid() && (found.st_mode & 07777U) == 0600U && found.st_nlink == 1 &&
         found.st_size == static_cast<off_t>(sizeof(LiveBlock));
}

}  // namespace weir::timeline
