#include "trainer/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "allocator/setting.hpp"

namespace weir {

OutputFile::OutputFile(std::string option, std::string path)
    : option_(std::move(option)), path_(std::move(path)) {
  struct stat status {};
  const bool exists = stat(path_.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    // A terminal, a pipe or /dev/null is written to and never replaced.
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(errno);
    return;
  }
  if (exists && access(path_.c_str(), W_OK) != 0) fail(errno);
  partial_ = path_ + ".XXXXXX";
  descriptor_ = mkostemp(partial_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    const int error = errno;
    partial_.clear();
    fail(error);
  }
  const mode_t mask = umask(0);
  umask(mask);
  (void)fchmod(descriptor_, exists ? status.st_mode & 0777U : 0666U & ~mask);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!partial_.empty()) unlink(partial_.c_str());
}

void OutputFile::fail(int error) const {
  refuse(option_, path_,
         "a file that can be written (" + std::generic_category().message(error) + ")");
}

void OutputFile::commit(std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = write(descriptor_, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
  if (partial_.empty()) return;
  if (fsync(descriptor_) != 0) fail(errno);
  if (rename(partial_.c_str(), path_.c_str()) != 0) fail(errno);
  partial_.clear();
}

}  // namespace weir
