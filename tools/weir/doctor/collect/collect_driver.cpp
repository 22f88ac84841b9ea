// Asks the driver and the libraries beside it, each in a process of its own.

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "kernels/blas/cublas_places.hpp"
#include "tools/timeline/cupti/library.hpp"
#include "tools/weir/doctor/collect/bounded.hpp"
#include "tools/weir/doctor/collect/collect.hpp"

namespace weir::cli::doctor {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string file_of(void* library) {
  link_map* map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

template <typename F>
F function_of(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

std::string loader_error() {
  const char* const why = dlerror();
  return why != nullptr ? why : "the loader gives no reason";
}

// ---- From the child, as JSON.

Json to_json(const DriverInfo& info) {
  Json devices = Json::array();
  for (const DeviceInfo& device : info.devices) {
    Json one{{"number", device.number},       {"name", device.name},
             {"total", device.total.count},   {"free", nullptr},
             {"has_pages", device.has_pages}, {"exports_files", device.exports_files}};
    if (device.free) one["free"] = device.free->count;
    devices.push_back(std::move(one));
  }
  return {{"problem", info.problem}, {"file", info.file},       {"is_standin", info.is_standin},
          {"error", info.error},     {"version", info.version}, {"devices", std::move(devices)}};
}

DriverInfo driver_from(const Json& json) {
  DriverInfo info{.problem = json.at("problem"),
                  .file = json.at("file"),
                  .is_standin = json.at("is_standin"),
                  .error = json.at("error"),
                  .version = json.at("version"),
                  .devices = {}};
  for (const Json& one : json.at("devices")) {
    DeviceInfo device{.number = one.at("number"),
                      .name = one.at("name"),
                      .total = {one.at("total").get<std::uint64_t>()},
                      .free = {},
                      .has_pages = one.at("has_pages"),
                      .exports_files = one.at("exports_files")};
    if (!one.at("free").is_null()) device.free = Bytes{one.at("free").get<std::uint64_t>()};
    info.devices.push_back(std::move(device));
  }
  return info;
}

std::string packed(const LibraryFound& found) {
  return Json{{"path", found.path}, {"version", found.version}, {"problem", found.problem}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

/// Returns what `look` found, or that it did not come back.
LibraryFound found_by(const std::string& name, const std::function<LibraryFound()>& look,
                      std::chrono::milliseconds limit) {
  const Bounded ran = run_function([&] { return packed(look()); }, limit);
  if (ran.answer == Answer::kTimedOut) return {.problem = "loading " + name + " does not end"};
  const Json json = Json::parse(ran.out, nullptr, false);
  if (ran.answer == Answer::kCrashed || json.is_discarded()) {
    return {.problem = "loading " + name + " ends the process" +
                       (ran.err.empty() ? "" : ": " + ran.err.substr(0, ran.err.find('\n')))};
  }
  return {.path = json.at("path"), .version = json.at("version"), .problem = json.at("problem")};
}

// ---- In the child.

LibraryFound look_for_nvml() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return {.problem = loader_error()};
  LibraryFound found{.path = file_of(library)};
  const auto init = function_of<int (*)()>(library, "nvmlInit_v2");
  const auto text_of = function_of<const char* (*)(int)>(library, "nvmlErrorString");
  const auto version = function_of<int (*)(char*, unsigned)>(library, "nvmlSystemGetDriverVersion");
  const int error = init != nullptr ? init() : -1;
  if (error != 0) {
    found.problem = text_of != nullptr ? text_of(error) : "error " + std::to_string(error);
    return found;
  }
  std::array<char, 96> text{};
  if (version != nullptr && version(text.data(), static_cast<unsigned>(text.size())) == 0) {
    found.version = text.data();
  }
  return found;
}

LibraryFound look_for_cublas() {
  std::string reason;
  for (const std::string& place : cublas_places(process_environment(), WEIR_CUDA_VERSION / 1000)) {
    void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      reason = loader_error();
      continue;
    }
    LibraryFound found{.path = file_of(library)};
    const auto get = function_of<int (*)(int, int*)>(library, "cublasGetProperty");
    for (int part = 0; get != nullptr && part < 3; ++part) {
      int value = 0;
      if (get(part, &value) != 0) break;
      found.version += (part == 0 ? "" : ".") + std::to_string(value);
    }
    return found;
  }
  return {.problem = reason};
}

LibraryFound look_for_cupti(const std::vector<std::string>& runtimes) {
  using namespace timeline::cupti;
  std::string why;
  const auto library = open_library(cupti_places(process_environment(), runtimes), why);
  if (library == nullptr) return {.problem = why};
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(library->common.flush_all), &info) != 0;
  return {.path = known ? info.dli_fname : library->path};
}

// ---- Files.

/// Returns the version in a line such as `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65`.
std::string module_version(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    std::string word = text.substr(at, end - at);
    at = end + 1;
    const bool is_version =
        word.find('.') != std::string::npos &&
        std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
    if (is_version) return word;
  }
  return {};
}

/// Whether CUDA opens it: nvidiactl, nvidia-uvm and nvidia0.
bool is_used(const std::string& name) {
  if (name == "nvidiactl" || name == "nvidia-uvm") return true;
  constexpr std::string_view kGpu = "nvidia";
  return name.starts_with(kGpu) && name.size() > kGpu.size() &&
         name.find_first_not_of("0123456789", kGpu.size()) == std::string::npos;
}

std::vector<DeviceFile> device_files_in(const std::string& root) {
  std::vector<DeviceFile> files;
  std::error_code error;
  fs::directory_iterator each(root + "/dev", error);
  for (const fs::directory_iterator end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (!is_used(name)) continue;
    files.push_back(
        {.path = "/dev/" + name, .usable = access(each->path().c_str(), R_OK | W_OK) == 0});
  }
  std::ranges::sort(files, {}, &DeviceFile::path);
  return files;
}

}  // namespace

DriverFacts collect_driver(const CollectOptions& options,
                           const std::vector<std::string>& runtimes) {
  DriverFacts facts;
  facts.toolkit = WEIR_CUDA_VERSION;
  facts.kernel_module =
      module_version(read_small(options.root + "/proc/driver/nvidia/version").value_or(""));
  facts.device_files = device_files_in(options.root);
  std::error_code error;
  facts.is_wsl = fs::exists(options.root + "/dev/dxg", error);
  const Bounded asked = run_function(
      [] { return to_json(ask_driver()).dump(-1, ' ', false, Json::error_handler_t::replace); },
      options.driver_limit);
  facts.answer = asked.answer;
  facts.signal = asked.signal;
  const Json json = Json::parse(asked.out, nullptr, false);
  if (json.is_discarded()) {
    facts.driver.problem = asked.err;
  } else {
    facts.driver = driver_from(json);
  }
  facts.nvml = found_by("NVML", look_for_nvml, options.library_limit);
  if (facts.toolkit != 0) facts.cublas = found_by("cuBLAS", look_for_cublas, options.library_limit);
  facts.cupti = found_by(
      "CUPTI", [&] { return look_for_cupti(runtimes); }, options.library_limit);
  return facts;
}

}  // namespace weir::cli::doctor
