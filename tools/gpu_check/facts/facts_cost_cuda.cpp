// The cost of events and stream queries, and whether a stream may be queried beside a capture.

#include <array>

#include "tools/gpu_check/facts/facts_busy_cuda.hpp"
#include "tools/gpu_check/facts/facts_clock.hpp"

namespace weir::gpu_check {
namespace {

/// A small operation before an event.
class Operation {
 public:
  explicit Operation(const Driver& driver) : driver_(driver), word_(driver, 4), stream_(driver) {}
  void enqueue() { CALL(driver_, cuMemsetD32Async, word_.at(), 1U, std::size_t{1}, stream_.get()); }
  void record(const Event& event) { CALL(driver_, cuEventRecord, event.get(), stream_.get()); }
  void synchronize() { CALL(driver_, cuStreamSynchronize, stream_.get()); }

 private:
  const Driver& driver_;
  const Memory word_;
  const Stream stream_;
};

constexpr unsigned kSpinning = CU_EVENT_DEFAULT;
constexpr unsigned kBlocking = CU_EVENT_BLOCKING_SYNC;

/// Measures operations that are each followed by what `enqueue` enqueues.
template <typename Enqueue>
std::string cost_of_each(Operation& operation, const Enqueue& enqueue) {
  const auto start = FactClock::now();
  const std::size_t count = repeat(enqueue);
  const double enqueued = microseconds_since(start);
  operation.synchronize();
  const double done = microseconds_since(start);
  const auto each = static_cast<double>(count);
  return in_microseconds(enqueued / each) + " to enqueue, " + in_microseconds(done / each) +
         " until done (" + std::to_string(count) + ")";
}

std::string cost_of_recording(const Driver& driver) {
  Operation operation(driver);
  const Event spinning(driver, kSpinning);
  const Event blocking(driver, kBlocking);
  const auto with = [&](const Event& event) {
    return cost_of_each(operation, [&] {
      operation.enqueue();
      operation.record(event);
    });
  };
  std::string found = "without: " + cost_of_each(operation, [&] { operation.enqueue(); });
  found += "; spinning: " + with(spinning);
  return found + "; blocking: " + with(blocking);
}

std::string cost_of_waiting(const Driver& driver) {
  Operation operation(driver);
  const auto with = [&](unsigned flags) {
    const Event event(driver, flags);
    return cost_of_asking([&] {
      operation.enqueue();
      operation.record(event);
      CALL(driver, cuEventSynchronize, event.get());
      return true;
    });
  };
  return "spinning: " + with(kSpinning) + "; blocking: " + with(kBlocking);
}

std::string cost_of_query(const Driver& driver) {
  const auto ask = [&](CUstream stream, CUresult expected) {
    return cost_of_asking([&] { return RAW(driver, cuStreamQuery, stream) == expected; },
                          BusyStream::kLongest / 2);
  };
  const Stream idle(driver);
  const std::string found = "idle: " + ask(idle.get(), CUDA_SUCCESS);
  const BusyStream busy(driver, BusyWith::kKernel);
  return found + "; busy: " + ask(busy.get(), CUDA_ERROR_NOT_READY);
}

std::string query_beside_captures(const Driver& driver) {
  const Stream asked(driver);
  const auto both = [&](const char* name, CUstreamCaptureMode mode) {
    return std::string(name) + ": " + asked_on_both(driver, mode, [&](CUstream /*captured*/) {
             return RAW(driver, cuStreamQuery, asked.get());
           });
  };
  return both("global", CU_STREAM_CAPTURE_MODE_GLOBAL) + "; " +
         both("relaxed", CU_STREAM_CAPTURE_MODE_RELAXED);
}

constexpr const char* kCost = "(a cost; in brackets how many were done in time)";
constexpr std::array kCostQuestions{
    Question{"an operation with an event that threads spin on, and with one that they sleep on",
             kCost, cost_of_recording},
    Question{"an operation and a wait for it, spinning and asleep", kCost, cost_of_waiting},
    Question{"cuStreamQuery", kCost, cost_of_query},
    Question{"cuStreamQuery of a stream that is not captured, while another is", "(not documented)",
             query_beside_captures},
};

}  // namespace

std::span<const Question> cost_questions() { return kCostQuestions; }

}  // namespace weir::gpu_check
