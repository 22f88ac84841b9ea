#include "tools/timeline/live/claims.hpp"

#include <sys/sysmacros.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

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

std::vector<bool> believed(std::span<const Claim> claims) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> proven;
  // Programs in two containers may have equal numbers and start times.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::size_t> unseen;
  for (const Claim& claim : claims) {
    if (claim.holder == LockHolder::kNamed) proven.emplace(claim.pid, claim.started);
    if (claim.holder == LockHolder::kUnseen) {
      ++unseen[{claim.pid, claim.started, claim.pid_namespace}];
    }
  }
  std::vector<bool> is_believed;
  is_believed.reserve(claims.size());
  for (const Claim& claim : claims) {
    const bool is_only = claim.holder == LockHolder::kUnseen &&
                         !proven.contains({claim.pid, claim.started}) &&
                         unseen.at({claim.pid, claim.started, claim.pid_namespace}) == 1;
    is_believed.push_back(claim.holder == LockHolder::kNamed || is_only);
  }
  return is_believed;
}

}  // namespace weir::timeline
