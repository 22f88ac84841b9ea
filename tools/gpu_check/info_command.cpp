#include <cstdio>
#include <string_view>

#include "allocator/error.hpp"
#include "tools/gpu_check/command.hpp"
#include "tools/gpu_check/info.hpp"

namespace weir::gpu_check {

int run_info(int argc, char** argv) {
  const bool as_json = argc == 2 && std::string_view(argv[1]) == "--json";
  if (argc > 1 && !as_json) throw UsageError("info takes --json or nothing");
  const GpuInfo info = find_gpus();
  if (info.gpus.empty()) {
    std::fprintf(stderr, "%s: no GPU: %s\n", argv[0], info.why.c_str());
    return 2;
  }
  if (as_json) std::fputs(format_info(info).c_str(), stderr);
  const std::string text = as_json ? info_json(info).dump(2) + "\n" : format_info(info);
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace weir::gpu_check
