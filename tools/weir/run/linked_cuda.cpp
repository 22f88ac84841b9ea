#include "tools/weir/run/linked_cuda.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace weir::cli {
namespace {

/// Maps a file for reading during its lifetime.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return;
    struct stat info {};
    if (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
      const auto size = static_cast<std::size_t>(info.st_size);
      void* const address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (address != MAP_FAILED) {
        address_ = address;
        size_ = size;
      }
    }
    close(descriptor);
  }
  ~MappedFile() {
    if (address_ != nullptr) munmap(address_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::string_view bytes() const {
    return {static_cast<const char*>(address_), size_};
  }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

bool has(std::string_view file, std::string_view name) {
  return file.find(name) != std::string_view::npos;
}

}  // namespace

LinkedCuda linked_cuda_in(std::string_view file) {
  constexpr std::array<std::string_view, 4> kFrameworks{"libpython", "libtorch", "libc10",
                                                        "libtensorflow"};
  // The name of an error, which the runtime has in its table; a symbol would be gone after strip.
  // The stand-in's own runtime runs on it.
  const bool static_runtime = has(file, "cudaErrorCudartUnloading") && !has(file, "weir_standin");
  return {
      .cuda = static_runtime || has(file, "libcudart.so") || has(file, "libcuda.so"),
      .static_runtime = static_runtime,
      .framework = std::ranges::any_of(kFrameworks, [&](auto name) { return has(file, name); })};
}

LinkedCuda linked_cuda(const std::string& path) {
  const MappedFile file(path);
  // The text of a script says nothing of what it starts.
  if (!file.bytes().starts_with("\x7f"
                                "ELF"))
    return {};
  return linked_cuda_in(file.bytes());
}

bool finds_standin(const Environment& environment) {
  const char* const value = environment("LD_LIBRARY_PATH");
  std::string_view folders = value != nullptr ? value : std::string_view{};
  while (!folders.empty()) {
    const std::string folder(folders.substr(0, folders.find(':')));
    const MappedFile driver(folder + "/libcuda.so.1");
    if (!driver.bytes().empty()) return has(driver.bytes(), "weir_standin_reset");
    folders.remove_prefix(std::min(folder.size() + 1, folders.size()));
  }
  return false;
}

std::string no_cuda_hint(const LinkedCuda& linked, bool on_standin) {
  if (!linked.static_runtime || !on_standin) return {};
  return "its static CUDA runtime does not run on the stand-in driver: link it with nvcc -cudart "
         "shared";
}

}  // namespace weir::cli
