#pragma once

// ELF files of a few headers: enough for the checks before a program starts, and for the kernel to
// refuse them.

#include <elf.h>

#include <string>

#include "tools/weir/run/elf.hpp"

namespace weir::testing {

struct ElfBytes {
  unsigned char file_class = ELFCLASS64;
  Elf64_Half machine = EM_NONE;  ///< EM_NONE: this one
  Elf64_Half type = ET_DYN;
  bool loader = true;
};

[[nodiscard]] inline std::string elf_bytes(const ElfBytes& what = {}) {
  const cli::ElfFile own = cli::read_elf("/proc/self/exe").value();
  Elf64_Ehdr header{};
  std::string("\177ELF").copy(reinterpret_cast<char*>(header.e_ident), SELFMAG);
  header.e_ident[EI_CLASS] = what.file_class;
  header.e_ident[EI_DATA] = own.little_endian ? ELFDATA2LSB : ELFDATA2MSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = what.type;
  header.e_machine = what.machine == EM_NONE ? own.machine : what.machine;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  Elf64_Phdr first{};
  first.p_type = PT_LOAD;
  Elf64_Phdr second{};
  second.p_type = what.loader ? PT_INTERP : PT_NOTE;
  const auto bytes = [](const auto& part) {
    return std::string(reinterpret_cast<const char*>(&part), sizeof part);
  };
  return bytes(header) + bytes(first) + bytes(second);
}

/// The beginning of a 32-bit program's file.
[[nodiscard]] inline std::string elf32_bytes() {
  Elf32_Ehdr header{};
  std::string("\177ELF").copy(reinterpret_cast<char*>(header.e_ident), SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = EM_386;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

}  // namespace weir::testing
