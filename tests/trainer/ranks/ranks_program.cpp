// One rank of a test, started by an mpirun: ranks_program MODE [DETAIL]. Exits with 1 if what the
// mode computes is wrong.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "tools/program/run_main.hpp"
#include "trainer/ranks/open.hpp"

namespace {

using namespace weir;
using namespace std::chrono_literals;

/// Short times where a test waits for them, and long ones where a busy machine must not be late.
RanksOptions options_for(const std::string& mode, const std::string& detail) {
  RanksOptions options;
  options.lifeline.beat = 100ms;
  options.lifeline.dead_after = detail == "stopped" ? 3s : 60s;
  if (mode == "slow") options.patience.warn_after = 100ms;
  if (mode == "never") options.patience.give_up_after = 1s;
  return options;
}

/// Calls in host memory ignore the stream.
class NoStream final : public Stream {
 public:
  NoStream() : Stream(StreamId{}, kRanksStream) {}
  void copy(void* to, const void* from, Bytes size) override { std::memcpy(to, from, size.count); }
};

void require(bool holds, const std::string& what) {
  if (!holds) throw Error("not true: " + what);
}

/// A rank's numbers: of many magnitudes, so that another order of additions gives other bits.
std::vector<float> numbers(std::size_t count, int rank) {
  std::vector<float> values(count);
  std::uint32_t state = 12345U + static_cast<std::uint32_t>(rank) * 7919U;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    const int exponent = static_cast<int>((state >> 9U) % 24U) - 12;
    value = std::ldexp(static_cast<float>(state >> 8U) * 0x1p-24F - 0.5F, exponent);
  }
  return values;
}

std::vector<float> expected_sum(std::size_t count, int ranks) {
  std::vector<float> sum = numbers(count, 0);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<float> other = numbers(count, rank);
    for (std::size_t i = 0; i < count; ++i) sum[i] += other[i];
  }
  return sum;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

void reduce(Communicator& ranks, std::size_t count) {
  NoStream stream;
  for (int again = 0; again < 2; ++again) {
    std::vector<float> values = numbers(count, ranks.rank());
    const std::span<float> part(values);
    ranks.all_reduce(stream, {&part, 1});
    require(same_bits(values, expected_sum(count, ranks.size())), "the sum's bits");
  }
}

/// Every call. For the bytes of each see exchange_test.cpp.
void all_calls(Communicator& ranks) {
  const int rank = ranks.rank();
  const int size = ranks.size();
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000},
                                  Exchange::kPiece * static_cast<std::size_t>(size) + 5}) {
    reduce(ranks, count);
  }
  NoStream stream;
  std::vector<float> values = numbers(1001, rank);
  const std::array<std::span<float>, 2> parts{std::span(values).first(400),
                                              std::span(values).subspan(400)};
  ranks.all_reduce(stream, parts);
  require(same_bits(values, expected_sum(1001, size)), "the parts' bits");

  const std::vector<float> mine = numbers(77, rank);
  std::vector<float> all(77 * static_cast<std::size_t>(size));
  ranks.all_gather(stream, mine, all);
  for (int other = 0; other < size; ++other) {
    const auto place = std::span(all).subspan(static_cast<std::size_t>(other) * 77, 77);
    require(same_bits(place, numbers(77, other)), "what all_gather brings");
  }
  std::vector<std::byte> bytes(100, static_cast<std::byte>(rank + 1));
  std::vector<std::byte> gathered(100 * static_cast<std::size_t>(size));
  ranks.gather_all(bytes, gathered);
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    require(gathered[i] == static_cast<std::byte>(i / 100 + 1), "what gather_all brings");
  }
  ranks.broadcast(bytes);
  require(bytes[99] == std::byte{1}, "what broadcast brings");
  ranks.barrier();
}

/// The last rank does what `detail` says; the others go on until they are ended.
void one_fails(Communicator& ranks, const std::string& detail) {
  ranks.barrier();
  if (ranks.rank() == ranks.size() - 1) {
    if (detail == "killed") (void)raise(SIGKILL);
    if (detail == "stopped") (void)raise(SIGSTOP);
    if (detail == "throws") throw Error("this rank has no more disk");
    if (detail == "aborts") ranks.abort("lost its GPU");
  }
  for (;;) ranks.barrier();
}

/// The last rank is late for a call.
void slow(Communicator& ranks) {
  ranks.barrier();
  if (ranks.rank() == ranks.size() - 1) std::this_thread::sleep_for(1s);
  ranks.barrier();
}

int run(const std::string& mode, const std::string& detail) {
  const auto ranks = open_communicator(find_launch(), {}, options_for(mode, detail));
  if (mode == "calls") all_calls(*ranks);
  if (mode == "fails") one_fails(*ranks, detail);
  if (mode == "slow") slow(*ranks);
  if (mode == "never") {
    if (ranks->rank() == ranks->size() - 1) std::this_thread::sleep_for(60s);
    ranks->barrier();
  }
  const Traffic traffic = ranks->traffic();
  ranks->finish();
  std::cout << "rank " + std::to_string(ranks->rank()) + " of " + std::to_string(ranks->size()) +
                   " by " + ranks->engine() + ": done, " + std::to_string(traffic.bytes) +
                   " bytes\n";
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "calls";
  const std::string detail = count > 2 ? arguments[2] : "";
  return weir::run_main("ranks_program", [&] { return run(mode, detail); });
}
