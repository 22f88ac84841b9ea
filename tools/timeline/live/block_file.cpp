#include "tools/timeline/live/block_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <ctime>
#include <memory>
#include <system_error>

#include "allocator/error.hpp"
#include "tools/timeline/live/process.hpp"
#include "tools/timeline/live/reader.hpp"

namespace weir::timeline {
namespace {

constexpr std::size_t kWords = sizeof(LiveSample) / sizeof(std::uint64_t);

/// Throws Error where a call of the system did not succeed.
void require(bool succeeded, std::string_view call) {
  if (succeeded) return;
  const int error = errno;
  throw Error(std::string(call) + ": " + std::generic_category().message(error));
}

/// Cuts at a whole character of UTF-8. `place` stays ended by a zero.
template <std::size_t Size>
void copy_text(std::array<char, Size>& place, std::string_view text) noexcept {
  std::size_t length = std::min(text.size(), Size - 1);
  const auto continues = [text](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  while (length > 0 && continues(length)) --length;
  std::ranges::copy(text.substr(0, length), place.begin());
}

LiveBlock first_block(std::string_view program) {
  LiveBlock block{.magic = kLiveMagic,
                  .version = kLiveVersion,
                  .size = sizeof(LiveBlock),
                  .pid = static_cast<std::uint32_t>(getpid()),
                  .pid_namespace = pid_namespace()};
  const auto self = find_process(block.pid);
  if (!self) throw Error("/proc does not know this process");
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

/// The file has no name before it is whole and locked, so a reader never meets a part of it, and a
/// process that is killed here leaves nothing.
LiveBlock* make_file(const OpenFolder& folder, const std::string& name, const LiveBlock& contents) {
  const OpenFolder file(openat(folder.descriptor(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  require(file.is_open(), "open");
  // All of its memory now: a store into a page that the system cannot provide would be a SIGBUS.
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
  return block;
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
      block_ = make_file(open, name, contents);
      path_ = folder.path + "/" + name;
      return;
    } catch (const Error& error) {
      problems += (problems.empty() ? "" : ", ") + folder.path + ": " + error.what();
    }
  }
  throw Error(problems);
}

BlockFile::~BlockFile() {
  if (getpid() != pid_) return;  // it is not mapped here, and the addresses may be others' by now
  unlink(path_.c_str());
  munmap(block_, sizeof(LiveBlock));
}

void BlockFile::append(const LiveSample& sample) noexcept {
  const auto words = std::bit_cast<std::array<std::uint64_t, kWords>>(sample);
  const std::uint64_t count = block_->count;
  auto* const slot = reinterpret_cast<std::uint64_t*>(&block_->samples[count % kLiveSamples]);
  for (std::size_t i = 0; i < kWords; ++i) {
    std::atomic_ref(slot[i]).store(words[i], std::memory_order_relaxed);
  }
  std::atomic_ref(block_->count).store(count + 1, std::memory_order_seq_cst);
}

void BlockFile::add_device(std::string_view name) noexcept {
  const std::uint32_t count = block_->device_count;
  if (count == kLiveDevices) return;
  copy_text(block_->devices[count], name);
  std::atomic_ref(block_->device_count).store(count + 1, std::memory_order_release);
}

}  // namespace weir::timeline
