#include "tests/standin/driver/memory/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <string>

namespace weir::standin {
namespace {

std::map<const void*, SharedFile>& files() {
  static auto* const kFiles = new std::map<const void*, SharedFile>;
  return *kFiles;
}

void* map_file(int descriptor, std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

void* take_shareable(std::size_t bytes) {
  const int descriptor = memfd_create("weir stand-in", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  void* memory = nullptr;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) memory = map_file(descriptor, bytes);
  if (memory == nullptr) {
    close(descriptor);
    return nullptr;
  }
  files().emplace(memory, SharedFile{static_cast<std::uint64_t>(getpid()), descriptor, bytes});
  return memory;
}

bool give_shareable(const void* memory) {
  const auto found = files().find(memory);
  if (found == files().end()) return false;
  close(found->second.descriptor);
  files().erase(found);
  return true;
}

std::optional<SharedFile> file_of(const void* memory) {
  const auto found = files().find(memory);
  return found == files().end() ? std::nullopt : std::optional(found->second);
}

void* map_shared(const SharedFile& file) {
  const std::string path =
      "/proc/" + std::to_string(file.process) + "/fd/" + std::to_string(file.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat about {};
  // The descriptor may be another file's by now.
  const bool same = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
                    static_cast<std::uint64_t>(about.st_size) == file.bytes;
  void* memory = same ? map_file(descriptor, file.bytes) : nullptr;
  close(descriptor);
  return memory;
}

}  // namespace weir::standin
