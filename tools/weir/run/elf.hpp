#pragma once

// What a file's ELF header says about preloading into it, or preloading it.

#include <cstdint>
#include <optional>
#include <string>

namespace weir::cli {

struct ElfFile {
  bool whole = true;           ///< false if cut off within its headers; then nothing below is known
  bool wide = false;           ///< 64-bit
  std::uint16_t machine = 0;   ///< numbered as in <elf.h>
  bool little_endian = false;  ///< its numbers and its machine
  bool shared_object = false;  ///< a library, or a position-independent program
  bool has_loader = false;     ///< names the dynamic loader, as every dynamic program does
};

/// Returns up to `most` bytes from the file's start; nothing if it cannot be read.
[[nodiscard]] std::optional<std::string> read_front(const std::string& path, std::size_t most);

/// Returns nothing for a file that cannot be read or is not ELF.
[[nodiscard]] std::optional<ElfFile> read_elf(const std::string& path);

/// Whether it is for the same kind of machine as this program.
[[nodiscard]] bool is_native(const ElfFile& file);

}  // namespace weir::cli
