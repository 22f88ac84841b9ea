#include "trainer/data/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <system_error>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/printable.hpp"
#include "tools/program/table.hpp"

namespace weir {

void append_little_endian(std::string& text, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    text.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> shift)));
  }
}

void refuse_contents(std::string_view option, std::string_view path, std::size_t offset,
                     std::string_view expected, std::string_view found) {
  throw UsageError(std::string(option) + ": " + std::string(path) + ": at offset " +
                   std::to_string(offset) + ": expected " + std::string(expected) + ", found " +
                   std::string(found));
}

InputFile::InputFile(std::string option, std::string path)
    : option_(std::move(option)), path_(std::move(path)) {
  // Without O_NONBLOCK, opening a fifo would block until it has a writer.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(errno);
  try {
    open();
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

InputFile::~InputFile() { close(descriptor_); }

void InputFile::open() {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) fail(errno);
  if (S_ISDIR(status.st_mode)) fail(EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw UsageError(option_ + ": " + path_ + ": expected a regular file");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  read_to(std::min(size_, kHeader));
}

void InputFile::load() {
  try {
    bytes_.reserve(size_);
  } catch (const std::exception&) {  // bad_alloc, or more than a vector can hold
    throw UsageError(option_ + ": " + path_ + ": memory for its " + format_bytes({size_}) +
                     " is not available");
  }
  read_to(size_);
}

std::vector<std::uint8_t> InputFile::take_from(std::size_t begin) {
  load();
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin));
  return std::exchange(bytes_, {});
}

void InputFile::read_to(std::size_t end) {
  std::size_t done = bytes_.size();
  bytes_.resize(end);
  while (done < end) {
    const ssize_t count = read(descriptor_, bytes_.data() + done, end - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    if (count == 0) refuse_at(done, std::to_string(size_) + " bytes", "the end of the file");
    done += static_cast<std::size_t>(count);
  }
}

void InputFile::read_at(std::size_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    if (count == 0) refuse_at(offset, std::to_string(size_) + " bytes", "the end of the file");
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::size_t>(count);
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

void InputFile::require_magic(std::string_view magic, std::string_view what) const {
  const std::size_t count = std::min(magic.size(), bytes_.size());
  const std::string_view begin(reinterpret_cast<const char*>(bytes_.data()), count);
  if (magic.starts_with(begin)) return;
  refuse_at(0, printable(magic, true) + " (" + std::string(what) + ")",
            "'" + printable(begin, true) + "'");
}

void InputFile::require_checksum(std::size_t offset, std::uint32_t checksum,
                                 std::string_view what) const {
  std::array<std::byte, sizeof checksum> bytes{};
  read_at(offset, bytes);
  const auto found = std::bit_cast<std::uint32_t>(bytes);
  if (found == checksum) return;
  refuse_at(offset, "the checksum " + format_hex(checksum, 8) + " of " + std::string(what),
            format_hex(found, 8) + " (the file is damaged)");
}

void InputFile::refuse_at(std::size_t offset, std::string_view expected,
                          std::string_view found) const {
  refuse_contents(option_, path_, offset, expected, found);
}

void InputFile::require_at_least(std::size_t size, std::string_view what) const {
  if (size_ >= size) return;
  refuse_at(size_, std::to_string(size) + " bytes (" + std::string(what) + ")",
            "the end of the file");
}

void InputFile::require_size(std::size_t size, std::string_view what) const {
  require_at_least(size, what);
  if (size_ == size) return;
  refuse_at(size, "the end of the file after " + std::string(what),
            format_count(size_ - size, "more byte"));
}

}  // namespace weir
