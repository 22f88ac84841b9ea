#pragma once

// What a file's ELF header says about preloading: into it, or of it.

#include <cstdint>
#include <optional>
#include <string>

namespace weir::cli {

struct ElfFile {
  bool whole = true;           ///< false: it ends within its headers, and nothing below is known
  bool wide = false;           ///< of 64 bits
  std::uint16_t machine = 0;   ///< as <elf.h> numbers them
  bool little_endian = false;  ///< its numbers, and what it runs on
  bool shared_object = false;  ///< a library, or a program that can be loaded anywhere
  bool has_loader = false;  ///< names the dynamic loader, as every program does that is not static
};

/// Up to `most` bytes from the file's front; nothing where it cannot be read.
[[nodiscard]] std::optional<std::string> read_front(const std::string& path, std::size_t most);

/// Nothing for a file that cannot be read or is no ELF file.
[[nodiscard]] std::optional<ElfFile> read_elf(const std::string& path);

/// Whether it is for a machine as this program is for.
[[nodiscard]] bool is_native(const ElfFile& file);

}  // namespace weir::cli
