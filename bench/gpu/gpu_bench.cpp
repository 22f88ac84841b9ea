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

namespace {

using weir::bench::KernelTime;

double gigabytes_per_second(const KernelTime& time) { return time.bytes / time.microseconds / 1e3; }
double teraflops(const KernelTime& time) { return time.flops / time.microseconds / 1e6; }

void print_table(const std::string& device, const std::vector<KernelTime>& times) {
  std::printf("%s\n%-31s %-16s %11s %11s %9s %9s %6s %11s\n", device.c_str(), "kernel", "shape",
              "median us", "fastest us", "GB/s", "TFLOP/s", "floor", "over floor");
  for (const KernelTime& time : times) {
    std::printf("%-31s %-16s %11.1f %11.1f %9.0f ", time.name.c_str(), time.shape.c_str(),
                time.microseconds, time.fastest, gigabytes_per_second(time));
    if (time.flops > 0) {
      std::printf("%9.1f", teraflops(time));
    } else {
      std::printf("%9s", "-");
    }
    std::printf(" %6s %11.2f\n", time.floor_of.c_str(), time.over_floor());
  }
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
  if (json_path != "-") print_table(device, times);
  const int print_error = weir::print("");
  if (json) json->commit(json_of(device, times));
  weir::require_printed(print_error);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return weir::run_main("gpu_bench", [&] { return run(argc, argv); });
}
