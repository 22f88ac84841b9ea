// Asks the driver and the libraries beside it, each in a process of its own.

#include <dlfcn.h>
#include <link.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "kernels/blas/cublas_places.hpp"
#include "tools/program/is_there.hpp"
#include "tools/program/split.hpp"
#include "tools/timeline/cupti/library.hpp"
#include "tools/weir/doctor/bounded.hpp"
#include "tools/weir/doctor/collect.hpp"

namespace weir::cli::doctor {
namespace {

using Json = nlohmann::json;

// ---- From the child, as JSON.

Json to_json(const DriverInfo& info) {
  Json devices = Json::array();
  for (const DeviceInfo& one : info.devices) {
    devices.push_back(
        {one.number, one.name, one.total.count, one.free ? Json(one.free->count) : Json(nullptr)});
  }
  return {info.problem, info.file, info.is_standin, info.error, info.version, devices};
}

DriverInfo driver_from(const Json& json) {
  DriverInfo info{.problem = json.at(0),
                  .file = json.at(1),
                  .is_standin = json.at(2),
                  .error = json.at(3),
                  .version = json.at(4),
                  .devices = {}};
  for (const Json& one : json.at(5)) {
    DeviceInfo& device = info.devices.emplace_back();
    device.number = one.at(0);
    device.name = one.at(1);
    device.total = {one.at(2).get<std::uint64_t>()};
    if (!one.at(3).is_null()) device.free = Bytes{one.at(3).get<std::uint64_t>()};
  }
  return info;
}

/// Runs `look`, which returns a library's path or throws why there is none.
LibraryFound found_by(const std::string& name, const std::function<std::string()>& look,
                      std::chrono::milliseconds limit) {
  const Bounded ran = run_function(look, limit);
  if (ran.answer == Answer::kTimedOut) {
    return {.path = {}, .problem = "loading " + name + " does not end"};
  }
  if (ran.answer == Answer::kCrashed || ran.exit_code > 1) {
    const std::string said = ran.err.substr(0, ran.err.find('\n'));
    return {.path = {},
            .problem = "loading " + name + " ends the process" + (said.empty() ? "" : ": " + said)};
  }
  if (ran.exit_code != 0) return {.path = {}, .problem = last_line(ran.err)};
  return {.path = ran.out, .problem = {}};
}

// ---- In the child.

std::string look_for_cublas() {
  std::string reason;
  for (const std::string& place : cublas_places(process_environment(), WEIR_CUDA_VERSION / 1000)) {
    void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    link_map* map = nullptr;
    if (library != nullptr) {
      return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : place;
    }
    const char* const why = dlerror();
    reason = why != nullptr ? why : "the loader gives no reason";
  }
  throw std::runtime_error(reason);
}

std::string look_for_cupti(const std::vector<std::string>& runtimes) {
  using namespace timeline::cupti;
  std::string why;
  const auto library = open_library(cupti_places(process_environment(), runtimes), why);
  if (library == nullptr) throw std::runtime_error(why);
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(library->common.flush_all), &info) != 0;
  return known ? info.dli_fname : library->path;
}

/// Returns the version in a line such as `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65`.
std::string module_version(const std::string& text) {
  for (const std::string_view word : split(text, " \n")) {
    const bool is_version = word.find_first_not_of("0123456789.") == std::string_view::npos &&
                            word.find('.') != std::string_view::npos;
    if (is_version) return std::string(word);
  }
  return {};
}

}  // namespace

DriverFacts collect_driver(const CollectOptions& options,
                           const std::vector<std::string>& runtimes) {
  DriverFacts facts;
  facts.toolkit = WEIR_CUDA_VERSION;
  facts.kernel_module =
      module_version(read_small(options.root + "/proc/driver/nvidia/version").value_or(""));
  facts.has_files =
      is_there(options.root + "/dev/nvidiactl") || is_there(options.root + "/dev/dxg");
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
  if (facts.toolkit != 0) facts.cublas = found_by("cuBLAS", look_for_cublas, options.library_limit);
  facts.cupti = found_by(
      "CUPTI", [&] { return look_for_cupti(runtimes); }, options.library_limit);
  return facts;
}

}  // namespace weir::cli::doctor
