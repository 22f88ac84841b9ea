#include "tools/preload/hooks/torch_plug.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "tools/preload/driver/call.hpp"
#include "tools/preload/driver/driver.hpp"
#include "tools/preload/process/process.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/preload/torch/plug_file.hpp"
#include "tools/preload/torch/torch_version.hpp"

namespace weir::preload {
namespace {

namespace fs = std::filesystem;

/// Why there is no plug: the middle of the line for people.
class NoPlug : public Error {
 public:
  using Error::Error;
};

/// The loader's record of the library that has `address`. Throws NoPlug if none has it.
const link_map& library_at(const void* address) {
  Dl_info info{};
  void* map = nullptr;
  if (dladdr1(address, &info, &map, RTLD_DL_LINKMAP) == 0 || map == nullptr) {
    throw NoPlug("its libraries are not known to the loader");
  }
  return *static_cast<const link_map*>(map);
}

/// A library that stays open during its lifetime; null if it is not loaded.
class Loaded {
 public:
  explicit Loaded(const char* name) noexcept : handle_(dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {}
  ~Loaded() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  [[nodiscard]] void* find(const char* symbol) const noexcept {
    return handle_ != nullptr ? real_dlsym(handle_, symbol) : nullptr;
  }
  [[nodiscard]] bool is(const link_map& library) const noexcept {
    link_map* map = nullptr;
    return handle_ != nullptr && dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map == &library;
  }

 private:
  void* const handle_;
};

/// The PyTorch that is about to make its allocator.
struct Torch {
  TorchVersion version;
  CxxAbi abi = CxxAbi::kCxx11;
};

/// The plug names what it needs, and the loader takes the first library that has the name. With two
/// installations in a process that may be the other one's.
void require_named(const char* name, const link_map& library) {
  if (Loaded(name).is(library)) return;
  throw NoPlug(std::string("the loader knows another library as ") + name +
               ", or none; PyTorch's own is " + library.l_name);
}

Torch torch_at(const void* address) {
  const link_map& c10_cuda = library_at(address);
  // Beside the folder of the library, as the loader names it: the folder may be a link.
  const fs::path file = fs::path(c10_cuda.l_name).parent_path().parent_path() / "version.py";
  constexpr std::size_t kMost = 65536;
  const auto text = read_beginning(file.string(), kMost);
  const auto version = text ? parse_torch_version(*text) : std::nullopt;
  if (!version) throw NoPlug("its version is not known: " + file.string() + " does not say it");
  const Loaded library(c10_cuda.l_name);
  const void* const older = library.find(kCxx03Constructor);
  const void* const error = older != nullptr ? older : library.find(kCxx11Constructor);
  require_named("libc10_cuda.so", c10_cuda);
  if (error == nullptr) throw NoPlug("its libc10.so does not tell its C++ ABI");
  require_named("libc10.so", library_at(error));
  return {*version, older != nullptr ? CxxAbi::kCxx03 : CxxAbi::kCxx11};
}

template <typename F>
F function_of(void* handle, const char* name) noexcept {
  F function = nullptr;
  void* const address = real_dlsym(handle, name);
  std::memcpy(&function, &address, sizeof function);
  return function;
}

/// Returns 1 for installed, or 0 with the reason as a text of at most so many bytes.
using Install = int (*)(char*, std::size_t);

/// Opens the plug, which stays loaded, and returns its function that installs it.
Install open_plug(const std::string& path, const Torch& torch) {
  if (const auto why = why_unfit(path)) throw NoPlug("the plug " + path + " is not used: " + *why);
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    throw NoPlug(std::string("the plug is not used: ") + (why != nullptr ? why : path.c_str()));
  }
  const auto version_of = function_of<const char* (*)()>(handle, "weir_torch_version");
  const auto install = function_of<Install>(handle, "weir_torch_install");
  const char* const version = version_of != nullptr ? version_of() : nullptr;
  std::string why;
  if (version == nullptr || install == nullptr) {
    why = "it is no plug for PyTorch";
  } else if (version != major_minor(torch.version)) {
    why = "it is for PyTorch " + std::string(version);
  }
  if (why.empty()) return install;
  dlclose(handle);
  throw NoPlug("the plug " + path + " is not used: " + why);
}

void plug_in(const Torch& torch, bool asked) {
  if (!torch.version.is_release && !asked) {
    throw NoPlug(
        "it is no release, and its classes may be those of none; WEIR_TORCH=plug takes the "
        "plug of " +
        major_minor(torch.version) + " all the same");
  }
  const link_map& ours = library_at(reinterpret_cast<const void*>(&plug_into_torch));
  const fs::path path = fs::path(ours.l_name).parent_path() / plug_name(torch.version, torch.abi);
  std::error_code error;
  if (fs::symlink_status(path, error).type() == fs::file_type::not_found) {
    throw NoPlug("there is no plug for it: no file " + path.string());
  }
  const Install install = open_plug(path.string(), torch);
  std::array<char, 512> text{};
  if (install(text.data(), text.size()) == 1) {
    log(LogLevel::kInfo, "PyTorch " + torch.version.text + " allocates by " + path.string());
    return;
  }
  text.back() = '\0';
  text[std::strcspn(text.data(), "\n")] =
      '\0';  // PyTorch's errors have a trace after the first line
  throw NoPlug(text.front() != '\0' ? text.data() : "the plug gives no reason");
}

/// Null: pass. Its own function, because the plug's calls to Weir are no part of this Call.
Process* process() noexcept {
  const Call call;
  return Process::get();
}

void try_once(const void* address) noexcept {
  const NoCancel no_cancel;
  const Process* const here = process();
  if (here == nullptr || here->settings().torch.value != TorchWay::kPlug) return;
  std::string name = "PyTorch";
  try {
    const Torch torch = torch_at(address);
    name += " " + torch.version.text;
    plug_in(torch, here->settings().torch.source != "default");
  } catch (const NoPlug& why) {
    log(LogLevel::kWarn, name + " allocates without Weir's plug: " + why.what());
  } catch (const std::exception& error) {
    log(LogLevel::kError, name + " allocates without Weir's plug: " + error.what());
  }
  (void)dlerror();  // the program's next dlerror must not report our failures
}

constinit pthread_once_t once = PTHREAD_ONCE_INIT;
constinit std::atomic<const void*> first{nullptr};  ///< the first caller's

}  // namespace

void plug_into_torch(const void* address) noexcept {
  const void* none = nullptr;
  (void)first.compare_exchange_strong(none, address);
  pthread_once(&once, [] { try_once(first.load()); });
}

}  // namespace weir::preload
