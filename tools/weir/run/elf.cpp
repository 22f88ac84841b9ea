#include "tools/weir/run/elf.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace weir::cli {
namespace {

/// Keeps the file open for reading during its lifetime.
class Reader {
 public:
  explicit Reader(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Reader() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  /// Returns how many bytes could be read at `offset`.
  [[nodiscard]] std::size_t read_at(void* data, std::size_t size, std::uint64_t offset) const {
    const ssize_t count = pread(descriptor_, data, size, static_cast<off_t>(offset));
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }

 private:
  const int descriptor_;
};

/// Whether a program header names the dynamic loader; nothing if the headers are cut off.
std::optional<bool> names_loader(const Reader& reader, const Elf64_Ehdr& header) {
  if (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) return std::nullopt;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (reader.read_at(&part, sizeof part, header.e_phoff + i * sizeof part) != sizeof part) {
      return std::nullopt;
    }
    if (part.p_type == PT_INTERP) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> read_front(const std::string& path, std::size_t most) {
  const Reader reader(path);
  if (!reader.is_open()) return std::nullopt;
  std::string front(most, '\0');
  front.resize(reader.read_at(front.data(), most, 0));
  return front;
}

std::optional<ElfFile> read_elf(const std::string& path) {
  const Reader reader(path);
  Elf64_Ehdr header{};
  if (!reader.is_open()) return std::nullopt;
  const std::size_t size = reader.read_at(&header, sizeof header, 0);
  if (size < SELFMAG || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  if (size < EI_NIDENT) return ElfFile{.whole = false};
  ElfFile file{.wide = header.e_ident[EI_CLASS] == ELFCLASS64,
               .little_endian = header.e_ident[EI_DATA] == ELFDATA2LSB};
  if (!file.wide) return file;  // its header has another layout
  if (size < sizeof header) return ElfFile{.whole = false};
  file.machine = header.e_machine;
  file.shared_object = header.e_type == ET_DYN;
  if (!is_native(file)) return file;  // its numbers may have the other byte order
  const auto loader = names_loader(reader, header);
  if (!loader) return ElfFile{.whole = false};
  file.has_loader = *loader;
  return file;
}

bool is_native(const ElfFile& file) {
  const Reader self("/proc/self/exe");
  Elf64_Ehdr own{};
  if (!self.is_open() || self.read_at(&own, sizeof own, 0) != sizeof own) return true;
  return file.machine == own.e_machine &&
         file.little_endian == (own.e_ident[EI_DATA] == ELFDATA2LSB);
}

}  // namespace weir::cli
