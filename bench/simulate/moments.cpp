#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <iterator>

#include "bench/simulate/real.hpp"

namespace weir::simulate {
namespace {

/// Returns those that `ended` has a time for, by that time: the order in which the stream ran them.
std::vector<Moments*> in_order(std::span<Moments* const> batches,
                               std::atomic<std::int64_t> Moments::*ended) {
  const auto time = [ended](const Moments* batch) { return (batch->*ended).load(); };
  std::vector<Moments*> order;
  std::ranges::copy_if(batches, std::back_inserter(order),
                       [&](const Moments* one) { return time(one) != 0; });
  std::ranges::sort(order, {}, time);
  return order;
}

/// Returns how long after the end of what it waited for the batch went on; none if that is not
/// known. `computed`: all batches of its producer, in their order.
std::optional<Time> wake_up_of(const Moments& batch, const std::vector<Moments*>& computed) {
  const auto end = [](const Moments* one) { return Time(one->computed.load()); };
  const auto after = std::ranges::upper_bound(computed, batch.woken, {}, end);
  if (after == computed.begin()) return std::nullopt;
  auto awaited = std::prev(after);  // the last that had ended
  // If it was late by more than a batch, others have ended since. Of one wait in admission it is
  // known which it was for: Ledger::point_to_await.
  const auto own = std::ranges::find(computed, &batch);
  const auto first = std::ranges::upper_bound(computed, batch.slept_from, {}, end);
  if (batch.slept_once_to_begin && own != computed.end() && first < own) {
    const auto point = first + (own - first) / 4;
    if (end(*point) <= batch.woken) awaited = point;
  }
  return std::max(Time{}, batch.woken - end(*awaited) - batch.own);
}

void append(std::vector<Time>& to, const std::vector<Time>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void JitterSamples::add(const JitterSamples& other) {
  append(wake_up, other.wake_up);
  append(host, other.host);
  append(submit, other.submit);
  append(copy, other.copy);
  append(device, other.device);
  append(device_idle, other.device_idle);
}

Jitter JitterSamples::distributions() const {
  return {.wake_up = Distribution(histogram(wake_up)),
          .host = Distribution(histogram(host)),
          .submit = Distribution(histogram(submit)),
          .copy = Distribution(histogram(copy)),
          .device = Distribution(histogram(device)),
          .device_idle = Distribution(histogram(device_idle))};
}

Spent spent() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  return {.wall = std::chrono::steady_clock::now().time_since_epoch(),
          .cpu = std::chrono::seconds(cpu.tv_sec) + std::chrono::nanoseconds(cpu.tv_nsec),
          .sleeps = usage.ru_nvcsw};
}

Time host_time(const Spent& from, const Spent& to, bool may_wait) {
  const bool has_waited = may_wait && from.sleeps != to.sleeps;
  return has_waited ? to.cpu - from.cpu : to.wall - from.wall;
}

JitterSamples samples_of(std::span<Moments* const> batches, bool for_device) {
  JitterSamples samples;
  const auto late = [](Time end, Time from, Time takes) {
    return std::max(end - from - takes, Time{});
  };
  Time before{};
  for (Moments* one : in_order(batches, &Moments::copied)) {
    const Time end(one->copied.load());
    if (!one->copy_is_handed_over) {
      one->delays.copy = late(end, std::max(before, one->copy_enqueued), one->shape.copy);
      samples.copy.push_back(*one->delays.copy);
    }
    before = end;
  }
  before = {};
  const std::vector<Moments*> computed = in_order(batches, &Moments::computed);
  for (Moments* one : computed) {
    const Time end(one->computed.load());
    const Time ready = std::max(Time(one->copied.load()), one->enqueued);
    if (!one->work_is_handed_over) {
      one->delays.device = late(end, std::max(before, ready), one->shape.compute);
      (before >= ready ? samples.device : samples.device_idle).push_back(*one->delays.device);
    }
    before = end;
    samples.host.push_back(one->delays.host);
    samples.submit.push_back(one->delays.submit);
  }
  for (Moments* one : batches) {
    if (!for_device || one->woken == Time{}) continue;
    one->delays.wake_up = wake_up_of(*one, computed);
    if (one->delays.wake_up) samples.wake_up.push_back(*one->delays.wake_up);
  }
  return samples;
}

}  // namespace weir::simulate
