#pragma once

// A binary file that is read whole, and the one form in which its contents are refused.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

class InputFile {
 public:
  /// Reads it. UsageError naming `option`, the path and why not; only regular files are read.
  InputFile(std::string option, std::string path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }

  /// Four bytes as a number. The caller has checked that they are there.
  [[nodiscard]] std::uint32_t big_endian(std::size_t offset) const;
  [[nodiscard]] std::uint32_t little_endian(std::size_t offset) const;

  /// Refuses a file that ends before `size` bytes or goes on after them. `what` the size is of.
  void require_size(std::size_t size, std::string_view what) const;
  void require_at_least(std::size_t size, std::string_view what) const;
  /// `option: path: at offset …: expected …, found …`
  [[noreturn]] void refuse_at(std::size_t offset, std::string_view expected,
                              std::string_view found) const;

 private:
  [[noreturn]] void fail(int error) const;

  std::string option_;
  std::string path_;
  std::vector<std::uint8_t> bytes_;
};

/// The form itself, for contents that are found wrong only later.
[[noreturn]] void refuse_contents(std::string_view option, std::string_view path,
                                  std::size_t offset, std::string_view expected,
                                  std::string_view found);

}  // namespace weir
