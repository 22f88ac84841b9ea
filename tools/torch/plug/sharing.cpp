// Memory that another process uses as well.
//
// A handle has the form of native's, so native opens it: a plug's process can share with one
// without and the other way round. PyTorch keeps the storage until the other process is done with
// it.

#include <c10/util/Exception.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tools/torch/plug/allocator.hpp"

namespace weir::torch_plug {

#if WEIR_TORCH_HAS_SHARING
namespace {

constexpr char kMemory = 'c';  // an allocation of the driver
constexpr char kPages = 'e';   // an expandable segment

/// What is between the two first characters of a handle of pages and its file descriptors, as
/// native writes it (ShareHeader in c10/cuda/CUDACachingAllocator.cpp).
struct PagesHeader {
  pid_t process;
  std::size_t page;
  std::size_t pages;
#if WEIR_TORCH_HANDLE_VERSION >= 3
  int kind = 1;  // a file descriptor for each page
#endif
};

void append(std::string& text, const void* bytes, std::size_t count) {
  text.append(static_cast<const char*>(bytes), count);
}

// The other process takes the files out of this one, which Linux allows to a debugger alone. The
// security module Yama, Ubuntu's default, takes only a parent for that.
void let_others_take_files() {
  static const int once = prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  (void)once;  // fails without Yama, where it is not needed
}

std::string handle_of(const weir_shared& shared, const std::vector<int>& files) {
  std::string text(1, WEIR_TORCH_HANDLE_VERSION);
  if (shared.page == 0) {
    text += kMemory;
    append(text, shared.handle, sizeof shared.handle);
    return text;
  }
  text += kPages;
  PagesHeader header{};
  header.process = getpid();
  header.page = shared.page;
  header.pages = files.size();
  append(text, &header, sizeof header);
  append(text, files.data(), files.size() * sizeof(int));
  return text;
}

}  // namespace

native_api::ShareableHandle WeirAllocator::shareIpcHandle(void* pointer) {
  if (!blocks_.with(pointer, [](const Block&) {})) return native_.shareIpcHandle(pointer);
  weir_shared shared{};
  shared.size = sizeof shared;
  std::vector<int> files;
  bool good = weir_share(pointer, &shared, nullptr, 0) != 0;
  if (good && shared.page != 0) {
    let_others_take_files();
    files.resize(shared.bytes / shared.page);
    good = weir_share(pointer, &shared, files.data(), files.size()) != 0;
  }
  TORCH_CHECK(good,
              "Weir cannot share this memory with another process: the device or the system does "
              "not allow it, or the process has no more file descriptors (ulimit -n), of which "
              "each 2 MiB need one");
  return {static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(pointer) - shared.base),
          handle_of(shared, files)};
}
#endif

std::shared_ptr<void> WeirAllocator::getIpcDevPtr(std::string handle) {
  return native_.getIpcDevPtr(std::move(handle));
}

}  // namespace weir::torch_plug
