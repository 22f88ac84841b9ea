#include "trainer/checkpoint/checkpoint_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <system_error>

#include "allocator/base/output_place.hpp"
#include "allocator/base/setting.hpp"

namespace weir {
namespace {

/// Returns `process 1234 on node7`. A file may be shared by machines.
std::string this_run() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  std::string text = "process " + std::to_string(getpid());
  if (gethostname(host.data(), host.size() - 1) == 0) text += " on " + std::string(host.data());
  return text;
}

/// Writes it for those who find the file locked. Without it, on a full disk, they are refused, too.
void write_owner(int descriptor) {
  const std::string text = this_run() + "\n";
  if (ftruncate(descriptor, 0) == 0) (void)!pwrite(descriptor, text.data(), text.size(), 0);
}

/// Returns the first line of the file, or nothing if it cannot be read.
std::string read_owner(const std::string& name) {
  const int descriptor = open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return {};
  std::array<char, 128> bytes{};
  const ssize_t count = read(descriptor, bytes.data(), bytes.size());
  close(descriptor);
  const std::string text(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  return text.substr(0, text.find('\n'));
}

/// Returns whether a run wrote this line, and no other program.
bool is_owner(std::string_view line) {
  constexpr std::string_view kKnown =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_. ";
  return line.starts_with("process ") && line.find_first_not_of(kKnown) == std::string_view::npos;
}

}  // namespace

CheckpointLock::CheckpointLock(const std::string& option, const std::string& path, LockCall lock) {
  if (path.empty() || path == "-") return;
  const OutputPlace place = find_output(path);
  if (place.special || place.error != 0) return;
  const std::string name = place.path + ".lock";
  const LockedFile file = open_locked(name, lock);
  const std::string owner = read_owner(name);
  if (file.error == EWOULDBLOCK) {
    refuse(option, path,
           "a file that no other run uses: " + (is_owner(owner) ? owner : "another run") + " does");
  }
  if (file.error != 0) {
    refuse(option, path,
           "a file beside which " + name + " can be locked, so that no other run uses it (" +
               std::generic_category().message(file.error) + ")");
  }
  if (!owner.empty() && !is_owner(owner)) {
    close(file.descriptor);
    refuse(option, path, "a file without " + name + " beside it: no run wrote that one");
  }
  name_ = name;
  descriptor_ = file.descriptor;
  write_owner(descriptor_);
}

// The file goes before its lock: who gets the lock then finds that the name is gone.
CheckpointLock::~CheckpointLock() {
  if (descriptor_ < 0) return;
  unlink(name_.c_str());
  close(descriptor_);
}

}  // namespace weir
