#pragma once

// A binary file whose header is checked before the rest is read, and the common format of its error
// messages.

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

class InputFile {
 public:
  static constexpr std::size_t kHeader = 512;

  /// Reads the first kHeader bytes, or all if fewer. Reads only regular files. Throws UsageError
  /// with `option`, the path and the reason.
  InputFile(std::string option, std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Reads the rest. Check the size first, since this allocates all of it. Throws UsageError if the
  /// file is shorter.
  void load();
  /// The same, and returns the bytes from `begin` on; `bytes` is empty afterwards.
  [[nodiscard]] std::vector<std::uint8_t> take_from(std::size_t begin);
  /// Reads the bytes from `offset` on into `out`, whatever `bytes` has. The same errors.
  void read_at(std::size_t offset, std::span<std::byte> out) const;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Returns four bytes as a number. The caller has checked that they were read.
  [[nodiscard]] std::uint32_t big_endian(std::size_t offset) const;
  [[nodiscard]] std::uint32_t little_endian(std::size_t offset) const;

  /// Refuses a file that does not begin with `magic`, of the kind that `what` names.
  void require_magic(std::string_view magic, std::string_view what) const;
  /// Refuses a file whose four bytes at `offset` are not this checksum of `what`.
  void require_checksum(std::size_t offset, std::uint32_t checksum, std::string_view what) const;
  /// Refuses a file that is not exactly `size` bytes long. `what` names what the size is of.
  void require_size(std::size_t size, std::string_view what) const;
  void require_at_least(std::size_t size, std::string_view what) const;
  /// `option: path: at offset …: expected …, found …`
  [[noreturn]] void refuse_at(std::size_t offset, std::string_view expected,
                              std::string_view found) const;

 private:
  void open();
  void read_to(std::size_t end);
  [[noreturn]] void fail(int error) const;

  const std::string option_;
  const std::string path_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
  std::vector<std::uint8_t> bytes_;
};

/// Appends four bytes, the lowest first.
void append_little_endian(std::string& text, std::uint32_t value);

/// Throws that message for contents found wrong later.
[[noreturn]] void refuse_contents(std::string_view option, std::string_view path,
                                  std::size_t offset, std::string_view expected,
                                  std::string_view found);

/// The CRC-32 of gzip and PNG over bytes that come in pieces. zlib's, since a table of bytes would
/// take longer than the disk.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    value_ = static_cast<std::uint32_t>(
        crc32_z(value_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  }
  [[nodiscard]] std::uint32_t value() const noexcept { return value_; }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace weir
