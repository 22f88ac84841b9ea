#include "tools/timeline/live/claims.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace weir::timeline {

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
