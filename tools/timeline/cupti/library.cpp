#include "tools/timeline/cupti/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace weir::timeline::cupti {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNames{"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

/// Folders of CUPTI relative to the CUDA runtime's: the same folder (wheels of CUDA 13, conda), the
/// wheel beside it (CUDA 12), the toolkit.
constexpr std::array kBesideRuntime{"", "../../cuda_cupti/lib", "../extras/CUPTI/lib64",
                                    "../../../extras/CUPTI/lib64"};

void add_folder(std::vector<std::string>& files, const fs::path& folder) {
  for (const char* name : kNames) files.push_back((folder / name).lexically_normal().string());
}

/// Looks up a function. Returns whether it exists.
template <typename F>
bool find(void* library, const char* name, F& function) {
  void* const address = dlsym(library, name);
  static_assert(sizeof address == sizeof function);
  std::memcpy(&function, &address, sizeof function);
  return address != nullptr;
}

bool find_common(void* library, CommonCalls& calls) {
  find(library, "cuptiGetResultString", calls.get_result_string);
  find(library, "cuptiGetCallbackName", calls.get_callback_name);
  find(library, "cuptiSubscribe_v2", calls.subscribe2);
  bool all = find(library, "cuptiActivityFlushAll", calls.flush_all);
  all &= find(library, "cuptiUnsubscribe", calls.unsubscribe);
  return all;
}

/// Looks up what both generations have, and what a recording requires of it.
template <typename Calls>
bool find_generation(void* library, const std::string& suffix, Calls& calls) {
  const auto look_up = [&](const char* name, auto& function) {
    return find(library, (name + suffix).c_str(), function);
  };
  look_up("cuptiActivityGetAttribute", calls.get_attribute);
  look_up("cuptiActivitySetAttribute", calls.set_attribute);
  look_up("cuptiActivityEnableDriverApi", calls.enable_driver_call);
  look_up("cuptiActivityEnableRuntimeApi", calls.enable_runtime_call);
  look_up("cuptiActivityGetNumDroppedRecords", calls.dropped);
  look_up("cuptiActivityPushExternalCorrelationId", calls.push_external);
  look_up("cuptiActivityPopExternalCorrelationId", calls.pop_external);
  bool all = look_up("cuptiActivityRegisterCallbacks", calls.register_callbacks);
  all &= look_up("cuptiActivityEnable", calls.enable);
  all &= look_up("cuptiActivityDisable", calls.disable);
  all &= look_up("cuptiActivityGetNextRecord", calls.next_record);
  return all;
}

bool find_older(void* library, OlderCalls& calls) {
  find(library, "cuptiSetThreadIdType", calls.set_thread_id_type);
  find(library, "cuptiActivityEnableAllocationSource", calls.enable_allocation_source);
  find(library, "cuptiActivityRegisterTimestampCallback", calls.register_timestamp);
  return find(library, "cuptiSubscribe", calls.subscribe) && find_generation(library, "", calls);
}

bool find_newer(void* library, NewerCalls& calls) {
  return find_generation(library, "_v2", calls) && calls.set_attribute != nullptr;
}

/// Detects CUPTI 13.2, which has the first newer functions but lacks some. If it cannot start
/// because there is no driver, its functions call themselves until the stack overflows.
bool dies_without_driver(void* library) noexcept {
  return dlsym(library, "cuptiActivityEnable_v2") != nullptr &&
         dlsym(library, "cuptiActivityGetNextRecord_v2") == nullptr;
}

/// Returns whether there is a driver, in the kernel and as a library. Does not call it.
bool has_driver() {
  // the last two: WSL's, Jetson's
  constexpr std::array kDevices{"/dev/nvidiactl", "/dev/dxg", "/dev/nvmap"};
  std::error_code error;
  return std::ranges::any_of(kDevices, [&](auto file) { return fs::exists(file, error); }) &&
         dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr;
}

int add_runtime(dl_phdr_info* info, std::size_t /*size*/, void* paths) {
  const std::string_view path = info->dlpi_name;
  if (path.find("libcudart") != std::string_view::npos) {
    static_cast<std::vector<std::string>*>(paths)->emplace_back(path);
  }
  return 0;
}

void* open_any(const Places& places, std::string& path) {
  for (const std::string& name : places.loaded) {
    path = name;
    if (void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  for (const std::string& file : places.files) {
    path = file;
    if (void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

}  // namespace

Places cupti_places(const Environment& environment, const std::vector<std::string>& runtimes) {
  Places places;
  if (const char* only = environment("WEIR_CUPTI"); only != nullptr && *only != '\0') {
    places.files.emplace_back(only);
    return places;
  }
  places.loaded.assign(kNames.begin(), kNames.end());
  for (const std::string& runtime : runtimes) {
    for (const char* beside : kBesideRuntime) {
      add_folder(places.files, fs::path(runtime).parent_path() / beside);
    }
  }
  add_folder(places.files, {});
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* const root = environment(variable);
    if (root == nullptr || *root == '\0') continue;
    add_folder(places.files, fs::path(root) / "extras/CUPTI/lib64");
    add_folder(places.files, fs::path(root) / "lib64");
  }
  add_folder(places.files, "/usr/local/cuda/extras/CUPTI/lib64");
  add_folder(places.files, "/usr/local/cuda/lib64");
  return places;
}

std::vector<std::string> loaded_runtimes() {
  std::vector<std::string> paths;
  dl_iterate_phdr(add_runtime, &paths);
  return paths;
}

std::unique_ptr<Library> open_library(const Places& places, std::string& why) {
  auto library = std::make_unique<Library>();
  void* const handle = open_any(places, library->path);
  const bool works = handle == nullptr || !dies_without_driver(handle) || has_driver();
  (void)dlerror();  // so that the program's next dlerror() does not report our failures
  if (handle == nullptr) {
    const std::string names =
        places.loaded.empty() ? places.files.front() : "libcupti.so.13 or .12";
    why = "CUPTI, NVIDIA's profiling library, was not found: " + names +
          "; WEIR_CUPTI can name its file";
    return nullptr;
  }
  if (!works) {
    why = library->path + " is CUPTI 13.2, which works only where there is an NVIDIA driver";
    return nullptr;
  }
  const bool common = find_common(handle, library->common);
  library->has_older = find_older(handle, library->older) && common;
  library->has_newer =
      find_newer(handle, library->newer) && common && library->common.subscribe2 != nullptr;
  (void)dlerror();
  if (!library->has_older && !library->has_newer) {
    why = library->path + " is not CUPTI, or too old: 11.0 or later is needed";
    return nullptr;
  }
  return library;
}

}  // namespace weir::timeline::cupti
