#include "trainer/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "allocator/error.hpp"

namespace weir {
namespace {

/// Closes it on every way out.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return descriptor_; }

 private:
  const int descriptor_;
};

}  // namespace

void refuse_contents(std::string_view option, std::string_view path, std::size_t offset,
                     std::string_view expected, std::string_view found) {
  throw UsageError(std::string(option) + ": " + std::string(path) + ": at offset " +
                   std::to_string(offset) + ": expected " + std::string(expected) + ", found " +
                   std::string(found));
}

InputFile::InputFile(std::string option, std::string path)
    : option_(std::move(option)), path_(std::move(path)) {
  // Without O_NONBLOCK a fifo would hold the program until somebody writes into it.
  const Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) fail(errno);
  if (S_ISDIR(status.st_mode)) fail(EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw UsageError(option_ + ": " + path_ + ": expected a regular file, found another kind");
  }
  bytes_.resize(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < bytes_.size()) {
    const ssize_t count = read(file.get(), bytes_.data() + done, bytes_.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    if (count == 0) bytes_.resize(done);  // it became shorter
    done += static_cast<std::size_t>(count);
  }
}

void InputFile::fail(int error) const {
  throw UsageError(option_ + ": " + path_ + ": cannot be read (" +
                   std::generic_category().message(error) + ")");
}

std::uint32_t InputFile::big_endian(std::size_t offset) const {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8U | bytes_[offset + i];
  return value;
}

std::uint32_t InputFile::little_endian(std::size_t offset) const {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8U | bytes_[offset + i];
  return value;
}

void InputFile::refuse_at(std::size_t offset, std::string_view expected,
                          std::string_view found) const {
  refuse_contents(option_, path_, offset, expected, found);
}

void InputFile::require_at_least(std::size_t size, std::string_view what) const {
  if (bytes_.size() >= size) return;
  refuse_at(bytes_.size(), std::to_string(size) + " bytes (" + std::string(what) + ")",
            "the end of the file");
}

void InputFile::require_size(std::size_t size, std::string_view what) const {
  require_at_least(size, what);
  if (bytes_.size() == size) return;
  refuse_at(size, "the end of the file after " + std::string(what),
            std::to_string(bytes_.size() - size) + " more bytes");
}

}  // namespace weir
