// Writes the pages that browser_test.py opens into the named folder, each with the output of `weir
// timeline report --json` for the same timeline.

#include <cstdio>
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

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
    return 2;
  }
  try {
    const std::string folder = arguments[1];
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
