#include "tools/timeline/chrome/input.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <system_error>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"

namespace weir::timeline::chrome {
namespace {

constexpr std::size_t kPiece = 1U << 18U;

[[noreturn]] void refuse_reading(const std::string& path, int error) {
  throw UsageError(path + ": cannot be read (" + std::generic_category().message(error) + ")");
}

/// Opens a regular file. Without O_NONBLOCK, opening a fifo would block.
int open_regular(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) refuse_reading(path, errno);
  struct stat status {};
  const int error = fstat(file, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
  if (error == 0 && S_ISREG(status.st_mode)) return file;
  close(file);
  if (error != 0) refuse_reading(path, error);
  throw UsageError(path + ": not a regular file; a timeline is read from a regular file");
}

}  // namespace

Input::Input(const std::string& path, const ReadLimits& limits)
    : path_(path), limits_(limits), piece_(kPiece) {
  next_ = end_ = piece_.data();
  const int file = open_regular(path);
  file_ = gzdopen(file, "rb");
  if (file_ == nullptr) {
    close(file);
    throw Error("zlib has no memory");
  }
  (void)gzbuffer(file_, kPiece);
}

Input::~Input() { (void)gzclose_r(file_); }

bool Input::more() {
  if (ended_) return false;
  before_ += static_cast<std::uint64_t>(end_ - piece_.data());
  next_ = end_ = piece_.data();
  if (before_ > limits_.max_bytes) {
    throw UsageError(path_ + ": is larger than " + format_bytes(Bytes{limits_.max_bytes}) +
                     ", unpacked");
  }
  if (before_ - marked_ > limits_.max_string + kPiece) {
    throw UsageError(path_ + ": after byte " + std::to_string(marked_) +
                     " comes a text longer than " + format_bytes(Bytes{limits_.max_string}));
  }
  const int got = gzread(file_, piece_.data(), kPiece);
  int code = Z_OK;
  const char* const message = gzerror(file_, &code);
  if (got < 0) {
    if (code == Z_ERRNO) refuse_reading(path_, errno);
    throw UsageError(path_ + ": after byte " + std::to_string(before_) + " the gzip is broken (" +
                     message + ")");
  }
  end_ = piece_.data() + got;
  ended_ = got == 0;
  cut_ = ended_ && code == Z_BUF_ERROR;
  return !ended_;
}

}  // namespace weir::timeline::chrome
