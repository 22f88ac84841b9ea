#include "bench/simulate/moments.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace weir::simulate {
namespace {

void add_to(std::vector<Time>& samples, Time sample) {
  samples.push_back(std::max(sample, Time{}));
}

/// Returns those that `ended` has a time for, by that time: the order in which the stream ran them.
std::vector<const Moments*> in_order(std::span<const Moments* const> batches,
                                     std::atomic<std::int64_t> Moments::*ended) {
  const auto time = [ended](const Moments* batch) { return (batch->*ended).load(); };
  std::vector<const Moments*> order;
  std::ranges::copy_if(batches, std::back_inserter(order),
                       [&](auto* one) { return time(one) != 0; });
  std::ranges::sort(order, {}, time);
  return order;
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

Time host_time(const Spent& from, const Spent& to) {
  return from.sleeps == to.sleeps ? to.wall - from.wall : to.cpu - from.cpu;
}

JitterSamples samples_of(std::span<const Moments* const> batches, bool barrier) {
  JitterSamples samples;
  Time before{};
  for (const Moments* one : in_order(batches, &Moments::copied)) {
    const Time end(one->copied.load());
    const Time late = end - std::max(before, one->copy_enqueued) - one->shape.copy;
    if (!one->copy_is_handed_over) add_to(samples.copy, late);
    before = end;
  }
  before = {};
  for (const Moments* one : in_order(batches, &Moments::computed)) {
    const Time end(one->computed.load());
    const Time ready = std::max(Time(one->copied.load()), one->enqueued);
    const Time late = end - std::max(before, ready) - one->shape.compute;
    if (!one->work_is_handed_over) {
      add_to(before >= ready ? samples.device : samples.device_idle, late);
    }
    before = end;
    add_to(samples.host, one->host);
    add_to(samples.submit, one->submit);
    if (barrier) add_to(samples.wake_up, one->closed - end);
  }
  return samples;
}

}  // namespace weir::simulate
