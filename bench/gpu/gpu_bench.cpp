// gpu_bench: measures each kernel on the current GPU against its floor, and prints a table. --json
// FILE also writes one JSON object to that file (`-`: to standard output, without the table).
// --small uses inputs for a CPU, which tests the code and measures nothing. Without a GPU, exits
// with 2 and one line on standard error.

#include <cstdio>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gpu/gpu_kernels.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/run_main.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/program/table.hpp"

namespace {

using weir::bench::KernelTime;

double gigabytes_per_second(const KernelTime& time) { return time.bytes / time.microseconds / 1e3; }
double teraflops(const KernelTime& time) { return time.flops / time.microseconds / 1e6; }

std::string table_of(const std::string& device, const std::vector<KernelTime>& times) {
  using weir::format_number;
  std::vector<std::vector<std::string>> rows{
      {"kernel", "shape", "median us", "fastest us", "GB/s", "TFLOP/s", "floor", "over floor"}};
  for (const KernelTime& time : times) {
    rows.push_back({time.name, time.shape, format_number(time.microseconds, 1),
                    format_number(time.fastest, 1), format_number(gigabytes_per_second(time), 0),
                    time.flops > 0 ? format_number(teraflops(time), 1) : "-", time.floor_of,
                    format_number(time.over_floor(), 2)});
  }
  return device + "\n" + weir::format_table(rows, "llrrrrlr");
}

std::string json_of(const std::string& device, const std::vector<KernelTime>& times) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const KernelTime& time : times) {
    kernels.push_back({{"name", time.name},
                       {"shape", time.shape},
                       {"median_us", time.microseconds},
                       {"fastest_us", time.fastest},
                       {"bytes", time.bytes},
                       {"flops", time.flops},
                       {"gb_per_s", gigabytes_per_second(time)},
                       {"floor_of", time.floor_of},
                       {"floor_us", time.floor},
                       {"over_floor", time.over_floor()}});
  }
  const nlohmann::ordered_json all{{"device", device}, {"kernels", std::move(kernels)}};
  return weir::json_text(all);
}

int run(int argc, char** argv) {
  std::string json_path;
  auto size = weir::bench::InputSize::kMeasured;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--json" && i + 1 < argc && *argv[i + 1] != '\0') {
      json_path = argv[++i];
    } else if (flag == "--small") {
      size = weir::bench::InputSize::kSmall;
    } else {
      std::fprintf(stderr, "usage: gpu_bench [--json FILE] [--small]\n");
      return 2;
    }
  }
  std::string device;
  try {
    device = weir::bench::device_name();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: no GPU to measure: %s\n", error.what());
    return 2;
  }
  weir::require_standard_output();
  const auto json =
      json_path.empty() ? nullptr : std::make_unique<weir::OutputFile>("--json", json_path);
  const std::vector<KernelTime> times = weir::bench::time_kernels(size);
  const int print_error = weir::print(json_path == "-" ? "" : table_of(device, times));
  if (json) json->commit(json_of(device, times));
  weir::require_printed(print_error);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return weir::run_main("gpu_bench", [&] { return run(argc, argv); });
}
