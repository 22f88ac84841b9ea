#include "tools/timeline/live/lock_list.hpp"

#include <sys/sysmacros.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

namespace weir::timeline {
namespace {

/// The kernel returns the list in parts, and may skip a lock when another one is released
/// meanwhile.
constexpr int kMoreLooks = 4;

FlockHolders holders_now() {
  std::ifstream file("/proc/locks", std::ios::binary);
  return flock_holders({std::istreambuf_iterator<char>(file), {}});
}

}  // namespace

// A line is `1: FLOCK  ADVISORY  WRITE 8053 00:1b:131893 0 EOF`. A waiting process has `->` before
// FLOCK.
FlockHolders flock_holders(const std::string& locks) {
  FlockHolders holders;
  std::istringstream lines(locks);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number;
    std::string kind;
    std::string manner;
    std::string access;
    std::string file;
    std::int64_t pid = 0;
    if (!(words >> number >> kind >> manner >> access >> pid >> file)) continue;
    if (kind == "FLOCK" && access == "WRITE" && pid > 0) {
      holders.emplace(file, static_cast<std::uint32_t>(pid));
    }
  }
  return holders;
}

std::string file_number(dev_t device, ino_t inode) {
  char text[48];
  std::snprintf(text, sizeof text, "%02x:%02x:%llu", major(device), minor(device),
                static_cast<unsigned long long>(inode));
  return text;
}

LockList::LockList() : holders_(holders_now()), looks_left_(kMoreLooks) {}

std::optional<std::uint32_t> LockList::holder_of(dev_t device, ino_t inode) {
  const std::string file = file_number(device, inode);
  for (;;) {
    const auto found = holders_.find(file);
    if (found != holders_.end()) return found->second;
    if (looks_left_ == 0) return std::nullopt;
    --looks_left_;
    holders_ = holders_now();
  }
}

}  // namespace weir::timeline
