#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "allocator/base/error.hpp"
#include "tools/gpu_check/command.hpp"
#include "tools/gpu_check/info.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir::gpu_check {

int run_info(int argc, char** argv) {
  const bool as_json = argc == 3 && std::string_view(argv[1]) == "--json";
  if (argc > 1 && !as_json) throw UsageError("info takes --json FILE or nothing");
  const std::string path = as_json ? argv[2] : "";
  const auto figures = as_json ? std::make_unique<OutputFile>("--json", path) : nullptr;
  const GpuInfo info = find_gpus();
  if (info.gpus.empty()) {
    std::fprintf(stderr, "%s: no GPU: %s\n", argv[0], info.why.c_str());
    return 2;
  }
  int print_error = 0;
  if (path == "-") {
    std::fputs(format_info(info).c_str(), stderr);
  } else {
    print_error = print(format_info(info));
  }
  if (figures) figures->commit(json_text(info_json(info)));
  require_printed(print_error);
  return 0;
}

}  // namespace weir::gpu_check
