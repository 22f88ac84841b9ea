#include "scheduler/admission/free_run.hpp"

#include <algorithm>
#include <cstddef>

namespace weir {
namespace {

/// The streams that a batch used, in the order in which it began on them. Copies to the host are
/// left out: no batch waits for them.
struct Used {
  std::array<std::size_t, kStreamRoles> roles{};
  std::size_t count = 0;

  explicit Used(const BatchRun& run) noexcept {
    for (std::size_t role = 0; role < kStreamRoles; ++role) {
      if (role == index_of(StreamRole::kCopyOut) || run.at(role).device_time.count() == 0) continue;
      std::size_t place = count++;
      for (; place != 0 && run.at(roles.at(place - 1)).begun > run.at(role).begun; --place) {
        roles.at(place) = roles.at(place - 1);
      }
      roles.at(place) = role;
    }
  }
};

}  // namespace

FreeRun::Duration FreeRun::note_settled(const BatchRun& run, Duration credit) noexcept {
  const Used used(run);
  for (std::size_t i = 0; i < used.count; ++i) {
    const std::size_t role = used.roles.at(i);
    const StreamRun& on = run.at(role);
    // When its earlier streams were done, and when they are in the replay.
    Duration ready{};
    Duration free_ready{};
    for (std::size_t j = 0; j < i; ++j) {
      const Duration ended = run.at(used.roles.at(j)).ended;
      if (ended > on.begun) continue;
      ready = std::max(ready, ended);
      free_ready = std::max(free_ready, ended - slip_.at(used.roles.at(j)));
    }
    const Duration since = on.begun - on.gap;
    const Duration idle = std::max(on.starved, ready - since);
    const Duration most = std::min(credit, since + idle - free_ready);
    slip_.at(role) = std::clamp(slip_.at(role) + idle, Duration{}, std::max(most, Duration{}));
    ended_.at(role) = std::max(ended_.at(role), on.ended);
  }
  Duration last{};
  Duration free_last{};
  for (std::size_t role = 0; role < kStreamRoles; ++role) {
    last = std::max(last, ended_.at(role));
    free_last = std::max(free_last, ended_.at(role) - slip_.at(role));
  }
  const Duration before = lost_;
  behind_ = last - free_last;
  lost_ = std::max(lost_, behind_);
  return lost_ - before;
}

}  // namespace weir
