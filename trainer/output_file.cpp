#include "trainer/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "allocator/setting.hpp"

namespace weir {
namespace {

/// The standard stream that already goes to this file, or −1. Replacing the file would cost what
/// was printed; a second opening would write over it.
int standard_stream(const struct stat& file) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat status {};
    if (fstat(stream, &status) != 0) continue;
    if (status.st_dev == file.st_dev && status.st_ino == file.st_ino) return stream;
  }
  return -1;
}

std::string through_links(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real != nullptr ? real.get() : path;
}

}  // namespace

void require_different_files(std::span<const NamedPath> files) {
  const auto place_of = [](const NamedPath& file) {
    std::error_code error;  // a path that cannot be looked at is refused when it is opened
    const auto path = std::filesystem::weakly_canonical(file.path, error);
    // What does not exist from its first part on stays relative.
    return error ? std::filesystem::path() : std::filesystem::absolute(path, error);
  };
  for (auto file = files.begin(); file != files.end(); ++file) {
    const auto place = file->path.empty() ? std::filesystem::path() : place_of(*file);
    if (place.empty()) continue;
    for (auto other = file + 1; other != files.end(); ++other) {
      if (other->path.empty() || place_of(*other) != place) continue;
      refuse(file->name, file->path, "another file than that of " + other->name);
    }
  }
}

OutputFile::OutputFile(std::string option, std::string path)
    : option_(std::move(option)), path_(std::move(path)) {
  if (path_.empty()) fail(ENOENT);
  struct stat status {};
  const bool exists = stat(path_.c_str(), &status) == 0;
  const int stream = exists ? standard_stream(status) : -1;
  if (stream >= 0 || (exists && !S_ISREG(status.st_mode))) {
    descriptor_ =
        stream >= 0 ? fcntl(stream, F_DUPFD_CLOEXEC, 0) : open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(errno);
    return;
  }
  if (exists && access(path_.c_str(), W_OK) != 0) fail(errno);
  target_ = through_links(path_);
  open_partial();
  close_partial();
}

OutputFile::~OutputFile() { close_partial(); }

void OutputFile::open_partial() {
  partial_ = target_ + ".XXXXXX";
  descriptor_ = mkostemp(partial_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    const int error = errno;
    partial_.clear();
    fail(error);
  }
  struct stat status {};
  const mode_t mask = umask(0);
  umask(mask);
  const bool exists = stat(target_.c_str(), &status) == 0;
  (void)fchmod(descriptor_, exists ? status.st_mode & 0777U : 0666U & ~mask);
}

void OutputFile::close_partial() noexcept {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  if (!partial_.empty()) unlink(partial_.c_str());
  partial_.clear();
}

void OutputFile::fail(int error) const {
  refuse(option_, path_,
         "a file that can be written (" + std::generic_category().message(error) + ")");
}

void OutputFile::write_all(std::string_view contents) const {
  while (!contents.empty()) {
    const ssize_t written = write(descriptor_, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
}

void OutputFile::commit(std::string_view contents) {
  if (target_.empty()) {
    write_all(contents);
    return;
  }
  open_partial();
  write_all(contents);
  if (fsync(descriptor_) != 0) fail(errno);
  if (rename(partial_.c_str(), target_.c_str()) != 0) fail(errno);
  partial_.clear();
}

}  // namespace weir
