// Writes the pages that browser_test.py opens into the named folder, each with the output of `weir
// timeline report --json` for the same timeline. With a number of batches it writes one page of so
// many, and its cost.

#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "timeline/page/sample_pages.hpp"
#include "tools/timeline/analysis/report/report.hpp"
#include "tools/timeline/page/page.hpp"

namespace {

using weir::timeline::Timeline;
namespace made = weir::timeline::testing;

void write(const std::string& folder, const std::string& name, const Timeline& timeline) {
  const std::string page = weir::timeline::make_page(timeline, {.title = name});
  std::ofstream out(folder + "/" + name + ".html", std::ios::binary);
  out << page;
  out.close();
  std::ofstream report(folder + "/" + name + ".json", std::ios::binary);
  report << weir::timeline::report_json(timeline);
  report.close();
  if (!out || !report) {
    throw std::runtime_error("cannot write a page into " + folder);
  }
}

// The peak of memory since the last call, which resets it.
double peak_mib() {
  std::ifstream status("/proc/self/status");
  double kib = 0;
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") {
      status >> kib;
    }
  }
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
  return kib / 1024;
}

void measure(const std::string& folder, std::uint32_t batches) {
  made::MadeOptions options = made::fast_loader();
  options.batches = batches;
  options.layers = 6;
  const Timeline timeline = made::made_timeline(options);
  peak_mib();  // what making the records took
  const double before = peak_mib();
  const std::clock_t cpu = std::clock();
  const auto begin = std::chrono::steady_clock::now();
  const std::string page = weir::timeline::make_page(timeline);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf(
      "%zu records: page of %.2f MiB in %.2f s (%.2f s of processor), %.0f MiB more than the %.0f "
      "MiB before\n",
      timeline.processes.front().records.size(), static_cast<double>(page.size()) / (1U << 20U),
      took.count(), static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC, peak_mib() - before,
      before);
  std::ofstream(folder + "/measured.html", std::ios::binary) << page;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [BATCHES]\n", arguments[0]);
    return 2;
  }
  try {
    const std::string folder = arguments[1];
    if (count > 2) {
      measure(folder, static_cast<std::uint32_t>(std::stoul(arguments[2])));
      return 0;
    }
    write(folder, "unbounded", made::unbounded_timeline());
    write(folder, "barrier", made::barrier_timeline());
    write(folder, "throttled", made::throttled_timeline());
    write(folder, "gaps", made::gaps_timeline());
    write(folder, "large", made::large_timeline());
    write(folder, "failing", made::failing_timeline());
    write(folder, "harmful", made::harmful_timeline());
    write(folder, "empty", Timeline{});
    write(folder, "ranks", made::ranks_timeline());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
