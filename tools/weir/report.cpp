#include "tools/weir/report.hpp"

#include <csignal>
#include <cstring>

namespace weir::cli {

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

std::vector<Remark> remarks(const Ended& ended, const Collected& collected) {
  std::vector<Remark> all;
  for (const std::string& file : collected.unreadable) {
    all.push_back({LogLevel::kWarn, "the summary " + file +
                                        " was cut off: its process was ended while it wrote it"});
  }
  if (!collected.summaries.empty() || !all.empty()) return all;
  if (ended.signal != 0) {
    all.push_back({LogLevel::kWarn, "there is no summary: " + signal_name(ended.signal) +
                                        " ended the program before it could write one"});
  } else {
    all.push_back({LogLevel::kInfo, "there is no summary: the program used no CUDA"});
  }
  return all;
}

}  // namespace weir::cli
