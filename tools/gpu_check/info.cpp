#include "tools/gpu_check/info.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/version.hpp"
#include "commit.hpp"
#include "tools/gpu_check/command.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir::gpu_check {
namespace {

using nlohmann::json;

/// The variables of this environment that change a GPU's results or speed. tools/gpu_check/run.py
/// unsets these for measurements.
json changing_settings() {
  constexpr std::array<std::string_view, 3> kNames{
      "CUBLAS_", "NVIDIA_TF32_OVERRIDE=", "CUDA_LAUNCH_BLOCKING="};
  json found = json::object();
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view setting = *at;
    const auto starts = [&](std::string_view name) { return setting.starts_with(name); };
    if (std::none_of(kNames.begin(), kNames.end(), starts)) continue;
    const std::size_t sign = setting.find('=');
    found[std::string(setting.substr(0, sign))] = {{"value", setting.substr(sign + 1)},
                                                   {"source", "environment"}};
  }
  return found;
}

std::string text_of(const json& info) {
  const auto word = [](const json& one, const char* key) { return one[key].get<std::string>(); };
  std::string text =
      info["rehearsal"].get<bool>() ? "a rehearsal: the driver is the stand-in\n" : "";
  for (const json& gpu : info["gpus"]) {
    text += word(gpu, "name") + ", " + format_bytes(Bytes{gpu["memory_bytes"].get<std::size_t>()}) +
            ", compute capability " + word(gpu, "compute_capability") + ", " +
            gpu["multiprocessors"].dump() + " multiprocessors\n";
  }
  const std::string driver = word(info, "driver");
  text += "driver " + (driver.empty() ? "of unknown version" : driver) + " for CUDA " +
          word(info, "driver_cuda") + ", CUDA runtime " + word(info, "runtime") +
          ", built with toolkit " + word(info, "toolkit") + "\n" + word(info, "cublas") + "\n";
  for (const auto& [name, setting] : info["settings"].items()) {
    text += "set here, ignored by our own tests: " + name + "=" + word(setting, "value") + "\n";
  }
  return text + "Weir " + std::string(kVersion) + ", commit " + kCommit + "\n";
}

}  // namespace

#ifndef WEIR_CUDA_TOOLKIT
Machine find_gpus() {
  return {{{"gpus", nlohmann::json::array()}},
          "this program was built without a CUDA toolkit; build/dev/cuda_note.txt says why"};
}
#endif

int run_info(int argc, char** argv) {
  const bool as_json = argc == 3 && std::string_view(argv[1]) == "--json";
  if (argc > 1 && !as_json) throw UsageError("info takes --json FILE or nothing");
  const std::string path = as_json ? argv[2] : "";
  const auto figures = as_json ? std::make_unique<OutputFile>("--json", path) : nullptr;
  Machine machine = find_gpus();
  if (machine.found["gpus"].empty()) {
    std::fprintf(stderr, "%s: no GPU: %s\n", argv[0], machine.why.c_str());
    return 2;
  }
  machine.found["weir"] = kVersion;
  machine.found["commit"] = kCommit;
  machine.found["settings"] = changing_settings();
  const std::string text = text_of(machine.found);
  int print_error = 0;
  if (path == "-") {
    std::fputs(text.c_str(), stderr);
  } else {
    print_error = print(text);
  }
  if (figures) figures->commit(json_text(machine.found));
  require_printed(print_error);
  return 0;
}

}  // namespace weir::gpu_check
