#include "tools/program/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "allocator/base/output_place.hpp"
#include "allocator/base/setting.hpp"

namespace weir {
namespace {

/// Returns 0, or errno. `is_named` says whether the open file is still the one of that name.
int lock_open(int descriptor, const std::string& name, LockCall lock, bool& is_named) {
  struct stat opened {};
  struct stat named {};
  if (fstat(descriptor, &opened) != 0) return errno;
  if (!S_ISREG(opened.st_mode)) return EEXIST;
  if (lock(descriptor, LOCK_EX | LOCK_NB) != 0) return errno;
  is_named = lstat(name.c_str(), &named) == 0 && named.st_dev == opened.st_dev &&
             named.st_ino == opened.st_ino;
  return 0;
}

}  // namespace

LockedFile open_locked(const std::string& name, LockCall lock) {
  for (;;) {  // another process removed its file between our calls each time that this repeats
    // Without O_NONBLOCK, opening a fifo would block until it has a reader.
    const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const int descriptor = open(name.c_str(), flags, 0600);
    if (descriptor < 0) return {.descriptor = -1, .error = errno};
    bool is_named = false;
    const int error = lock_open(descriptor, name, lock, is_named);
    if (error == 0 && is_named) return {.descriptor = descriptor, .error = 0};
    close(descriptor);
    if (error != 0) return {.descriptor = -1, .error = error};
  }
}

namespace {

constexpr std::string_view kStandardStream = "-";

std::optional<FileIdentity> identity_of(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return std::nullopt;
  return FileIdentity{.device = status.st_dev, .inode = status.st_ino};
}

/// Resolves a path of a command. `stream` is what `-` means.
OutputPlace place_of(const NamedPath& file, int stream) {
  if (file.path != kStandardStream) return find_output(file.path);
  return {.path = {}, .identity = identity_of(stream), .special = true, .error = 0};
}

/// Returns the standard stream that an output is, or −1: that of `-`, or the one that already goes
/// to its file. Replacing that would lose what was printed; opening it again would overwrite it.
int stream_behind(const std::string& path, const OutputPlace& place) {
  if (path == kStandardStream) return STDOUT_FILENO;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (place.identity && identity_of(stream) == place.identity) return stream;
  }
  return -1;
}

/// Returns whether both are the same file, even if it does not exist yet.
bool same_file(const OutputPlace& a, const OutputPlace& b) {
  if (a.identity || b.identity) return a.identity == b.identity;
  return a.error == 0 && b.error == 0 && a.path == b.path;
}

bool is_regular(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

/// A terminal can be both read and written; a file cannot.
bool is_read(const NamedPath& input, const OutputPlace& place) {
  if (!place.identity) return false;
  return input.path == kStandardStream ? is_regular(STDIN_FILENO) : !place.special;
}

}  // namespace

void require_different_files(std::span<const NamedPath> outputs,
                             std::span<const NamedPath> inputs) {
  for (auto file = outputs.begin(); file != outputs.end(); ++file) {
    if (file->path.empty()) continue;
    const OutputPlace place = place_of(*file, STDOUT_FILENO);
    for (auto other = file + 1; other != outputs.end(); ++other) {
      if (other->path.empty() || !same_file(place, place_of(*other, STDOUT_FILENO))) continue;
      refuse(file->name, file->path, "a different file from that of " + other->name);
    }
    for (const NamedPath& input : inputs) {
      if (input.path.empty()) continue;
      const OutputPlace read = place_of(input, STDIN_FILENO);
      if (!is_read(input, read) || !same_file(place, read)) continue;
      refuse(
          file->name, file->path,
          "a different file from that of " + input.name + ", '" + input.path + "', which is read");
    }
  }
}

void require_apart_from_streams(const NamedPath& output) {
  if (output.path.empty()) return;
  const OutputPlace place = place_of(output, STDOUT_FILENO);
  // /dev/null mixes nothing.
  if (place.identity && place.identity == find_output("/dev/null").identity) return;
  const int stream = stream_behind(output.path, place);
  if (stream < 0) return;
  refuse(output.name, output.path,
         stream == STDOUT_FILENO ? "a separate file: the table goes to standard output"
                                 : "a separate file: messages go to standard error");
}

OutputFile::OutputFile(std::string option, std::string path, Beside beside)
    : option_(std::move(option)), path_(std::move(path)), beside_(beside) {
  if (path_.empty()) fail(ENOENT);
  const OutputPlace place = place_of({option_, path_}, STDOUT_FILENO);
  const int stream = stream_behind(path_, place);
  if (stream >= 0) {
    use_stream(stream);
  } else if (place.error != 0) {
    fail(place.error);
  } else if (place.special) {
    open_special();
  } else {
    if (place.identity && access(place.path.c_str(), W_OK) != 0) fail(errno);
    target_ = place.path;
    open_partial();
    discard();
  }
}

void OutputFile::use_stream(int stream) {
  const int flags = fcntl(stream, F_GETFL);
  if (flags < 0) fail(errno);
  if ((flags & O_ACCMODE) == O_RDONLY) fail(EBADF);  // hold_standard_streams: the stream is closed
  descriptor_ = fcntl(stream, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (descriptor_ < 0) fail(errno);
}

void OutputFile::open_special() {
  // Without O_NONBLOCK, opening a fifo waits until somebody reads it.
  descriptor_ = open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor_ < 0 && errno == ENXIO) refuse(option_, path_, "a pipe that is being read");
  const int flags = descriptor_ < 0 ? -1 : fcntl(descriptor_, F_GETFL);
  if (flags < 0 || fcntl(descriptor_, F_SETFL, flags & ~O_NONBLOCK) != 0) fail(errno);
}

void OutputFile::open_partial() {
  std::string name = target_ + (beside_ == Beside::kAnyName ? ".XXXXXX" : ".partial");
  if (beside_ == Beside::kAnyName) {
    descriptor_ = mkostemp(name.data(), O_CLOEXEC);
  } else {
    const LockedFile file = open_locked(name);
    if (file.error == EWOULDBLOCK)
      refuse(option_, path_, "a file that no other process writes now");
    descriptor_ = file.descriptor;
    errno = file.error;
  }
  if (descriptor_ < 0) fail(errno);
  partial_ = name;
  if (ftruncate(descriptor_, 0) != 0) fail(errno);
  struct stat status {};
  const mode_t mask = umask(0);
  umask(mask);
  const bool exists = stat(target_.c_str(), &status) == 0;
  (void)fchmod(descriptor_, exists ? status.st_mode & 0777U : 0666U & ~mask);
}

// The file goes before its lock: who gets the lock then finds that the name is gone.
void OutputFile::close_partial() noexcept {
  if (!partial_.empty()) unlink(partial_.c_str());
  partial_.clear();
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

void OutputFile::fail(int error) {
  close_partial();
  refuse(option_, path_,
         "a file that can be written (" + std::generic_category().message(error) + ")");
}

void OutputFile::begin() {
  if (target_.empty()) return;
  close_partial();
  open_partial();
}

void OutputFile::append(std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = write(descriptor_, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
}

void OutputFile::commit() {
  if (target_.empty()) return;
  if (fsync(descriptor_) != 0) fail(errno);
  if (rename(partial_.c_str(), target_.c_str()) != 0) fail(errno);
  partial_.clear();
  close(std::exchange(descriptor_, -1));
  const std::string folder = std::filesystem::path(target_).parent_path().string();
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;  // a folder without read permission: nothing can be asked of it
  const bool durable = fsync(opened) == 0 || errno == EINVAL;  // EINVAL: has no such thing
  const int error = errno;
  close(opened);
  if (!durable) fail(error);
}

void OutputFile::commit(std::string_view contents) {
  begin();
  append(contents);
  commit();
}

void OutputFile::discard() noexcept {
  if (!target_.empty()) close_partial();
}

}  // namespace weir
