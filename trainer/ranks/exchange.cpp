#include "trainer/ranks/exchange.hpp"

#include <algorithm>
#include <thread>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "trainer/ranks/shards.hpp"
#include "trainer/ranks/transport.hpp"

namespace weir {
namespace {

using Clock = std::chrono::steady_clock;

/// Polls often at first, since most waits are short, and then leaves the processor to other ranks.
void pause(int polls) {
  constexpr int kBusy = 200;
  if (polls < kBusy) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(polls - kBusy + 20, 500)));
  }
}

}  // namespace

void Exchange::begin(std::string_view call) {
  call_ = call;
  tag_ = (tag_ + 1) % kMostTag;
  calls_.fetch_add(1);
}

void Exchange::send(std::span<const std::byte> bytes, int to) {
  transport_.send(bytes, to, tag_);
  bytes_.fetch_add(bytes.size());
}

std::string Exchange::late_ranks() const {
  const std::vector<int> late = transport_.waits_for();
  std::string text = late.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < late.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(late[i]);
  }
  return text;
}

void Exchange::wait() {
  const Clock::time_point since = Clock::now();
  bool warned = false;
  for (int polls = 0; !transport_.progress(); ++polls) {
    pause(polls);
    const auto waited = Clock::now() - since;
    if (!warned && waited >= patience_.warn_after) {
      warned = true;
      log(LogLevel::kWarn, "rank " + std::to_string(transport_.rank()) + " waits for " +
                               late_ranks() + " in " + std::string(call_) + " since " +
                               in_seconds(patience_.warn_after));
    }
    if (waited >= patience_.give_up_after) {
      give_up_("waited for " + late_ranks() + " in " + std::string(call_) + " for " +
               in_seconds(patience_.give_up_after));
    }
  }
}

void Exchange::broadcast(std::span<std::byte> bytes) {
  begin("broadcast");
  if (transport_.rank() == 0) {
    for (int to = 1; to < transport_.size(); ++to) send(bytes, to);
  } else {
    receive(bytes, 0);
  }
  wait();
}

void Exchange::gather_all(std::span<const std::byte> mine, std::span<std::byte> all) {
  begin("gather_all");
  gather(mine, all);
}

void Exchange::gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const int ranks = transport_.size();
  if (transport_.rank() != 0) {
    send(mine, 0);
    receive(all, 0);
    return wait();
  }
  std::ranges::copy(mine, all.begin());
  for (int from = 1; from < ranks; ++from) {
    receive(all.subspan(static_cast<std::size_t>(from) * mine.size(), mine.size()), from);
  }
  wait();
  for (int to = 1; to < ranks; ++to) send(all, to);
  wait();
}

void Exchange::barrier() {
  begin("barrier");
  const std::byte mine{};
  std::vector<std::byte> all(static_cast<std::size_t>(transport_.size()));
  gather({&mine, 1}, all);
}

void Exchange::all_gather(std::span<const float> mine, std::span<float> all) {
  begin("all_gather");
  for (int other = 0; other < transport_.size(); ++other) {
    const std::span<float> place =
        all.subspan(static_cast<std::size_t>(other) * mine.size(), mine.size());
    if (other == transport_.rank()) {
      std::ranges::copy(mine, place.begin());
      continue;
    }
    receive(std::as_writable_bytes(place), other);
    send(std::as_bytes(mine), other);
  }
  wait();
}

void Exchange::all_reduce(std::span<const std::span<float>> parts) {
  begin("all_reduce");
  if (parts.size() == 1) return reduce(parts[0]);
  // Several small parts travel as one.
  packed_.clear();
  for (const std::span<float> part : parts) packed_.insert(packed_.end(), part.begin(), part.end());
  reduce(packed_);
  auto from = packed_.cbegin();
  for (const std::span<float> part : parts) {
    std::copy_n(from, part.size(), part.begin());
    from += static_cast<std::ptrdiff_t>(part.size());
  }
}

std::span<float> Exchange::piece(std::span<float> values, int rank, std::size_t round) const {
  const Shard share = shard_of(values.size(), rank, transport_.size());
  const std::size_t first = std::min<std::size_t>(round * piece_, share.count);
  const std::size_t count = std::min<std::size_t>(share.count - first, piece_);
  return values.subspan(share.first + first, count);
}

void Exchange::reduce(std::span<float> values) {
  const int me = transport_.rank();
  const int ranks = transport_.size();
  const std::size_t most = shard_of(values.size(), 0, ranks).count;  // no share is larger
  scratch_.resize(static_cast<std::size_t>(ranks) * std::min(most, piece_));
  for (std::size_t round = 0; round * piece_ < most; ++round) {
    const std::span<float> mine = piece(values, me, round);
    for (int other = 0; other < ranks; ++other) {
      if (other == me) continue;
      const auto place =
          std::span(scratch_).subspan(static_cast<std::size_t>(other) * mine.size(), mine.size());
      receive(std::as_writable_bytes(place), other);
      send(std::as_bytes(piece(values, other, round)), other);
    }
    wait();
    add_up(mine);
    for (int other = 0; other < ranks; ++other) {
      if (other == me) continue;
      receive(std::as_writable_bytes(piece(values, other, round)), other);
      send(std::as_bytes(mine), other);
    }
    wait();
  }
}

void Exchange::add_up(std::span<float> mine) {
  const auto of = [&](int rank) {
    return std::span(scratch_).subspan(static_cast<std::size_t>(rank) * mine.size(), mine.size());
  };
  std::ranges::copy(mine, of(transport_.rank()).begin());
  std::ranges::copy(of(0), mine.begin());
  for (int rank = 1; rank < transport_.size(); ++rank) {
    const float* const x = of(rank).data();
    float* const sum = mine.data();
    for (std::size_t i = 0; i < mine.size(); ++i) sum[i] += x[i];
  }
}

}  // namespace weir
