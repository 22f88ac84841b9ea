// What waits for a stream that is busy with other work, and what a page costs meanwhile.

#include "tools/gpu_check/facts/facts_busy_cuda.hpp"

#include <array>
#include <thread>

#include "tools/gpu_check/facts/facts_clock.hpp"
#include "tools/gpu_check/facts/facts_pages_cuda.hpp"
#include "tools/gpu_check/facts/spin_cuda.hpp"

namespace weir::gpu_check {

BusyStream::BusyStream(const Driver& driver, BusyWith with) : driver_(driver), stream_(driver) {
  if (with == BusyWith::kKernel) {
    spin(stream_.get(), kLongest);
  } else {
    CALL(driver_, cuLaunchHostFunc, stream_.get(), &BusyStream::run, static_cast<void*>(this));
  }
}

BusyStream::~BusyStream() {
  released_ = true;
  (void)RAW(driver_, cuStreamSynchronize, stream_.get());
}

bool BusyStream::is_busy() const {
  return RAW(driver_, cuStreamQuery, stream_.get()) == CUDA_ERROR_NOT_READY;
}

void BusyStream::run(void* self) {
  const auto& released = static_cast<BusyStream*>(self)->released_;
  const auto end = FactClock::now() + kLongest;
  while (!released && FactClock::now() < end) std::this_thread::yield();
}

namespace {

/// Returns which calls wait for a stream that does not use the memory.
std::string what_waits(const Driver& driver, BusyWith with) {
  Pages pages(driver, 1);
  std::string all;
  const auto look = [&](const char* name, const auto& call) {
    const BusyStream busy(driver, with);
    const bool can_tell = busy.is_busy();
    const auto start = FactClock::now();
    call();
    const bool waited = FactClock::now() - start > BusyStream::kLongest / 2;
    all += (all.empty() ? "" : ", ") + std::string(name) +
           (!can_tell ? " cannot be told"
            : waited  ? " waits"
                      : " does not");
  };
  look("create", [&] { pages.create(); });
  look("map", [&] { pages.map(0); });
  look("set access", [&] { pages.allow(0, 1); });
  look("unmap", [&] { pages.unmap(0); });
  look("release", [&] { pages.release(); });
  CUdeviceptr block = 0;
  CALL(driver, cuMemAlloc, &block, std::size_t{1} << 20);
  look("cuMemFree", [&] { CALL(driver, cuMemFree, block); });
  const Stream other(driver);
  CALL(driver, cuMemAllocAsync, &block, std::size_t{1} << 20, other.get());
  look("cuMemFreeAsync", [&] { CALL(driver, cuMemFreeAsync, block, other.get()); });
  return all;
}

std::string waits_for_host_function(const Driver& driver) {
  return what_waits(driver, BusyWith::kHostFunction);
}

std::string waits_for_kernel(const Driver& driver) { return what_waits(driver, BusyWith::kKernel); }

std::string cost_beside_kernels(const Driver& driver) {
  constexpr std::size_t kFewPages = 16;
  const BusyStream first(driver, BusyWith::kKernel);
  const BusyStream second(driver, BusyWith::kKernel);
  const std::string costs = page_costs(driver, kFewPages);
  return costs + (first.is_busy() && second.is_busy() ? "" : "; the kernels ended meanwhile");
}

/// Returns how many times `enqueue(stream)` returned at once before a call waited for room in the
/// queue of a busy stream.
template <typename Enqueue>
std::string room_for(const Driver& driver, const Enqueue& enqueue) {
  constexpr std::size_t kMost = 4096;
  const BusyStream busy(driver, BusyWith::kKernel);
  const auto begin = FactClock::now();
  for (std::size_t done = 0; done < kMost; ++done) {
    const auto start = FactClock::now();
    enqueue(busy.get());
    if (FactClock::now() - start > BusyStream::kLongest / 4) return std::to_string(done);
    if (FactClock::now() - begin > BusyStream::kLongest / 2) break;
  }
  return busy.is_busy() ? "more" : "cannot be told";
}

std::string room_in_queue(const Driver& driver) {
  const Memory word(driver, 4);
  const Event spinning(driver);
  const Event blocking(driver, CU_EVENT_BLOCKING_SYNC);
  const auto set = [&](CUstream stream) {
    CALL(driver, cuMemsetD32Async, word.at(), 1U, std::size_t{1}, stream);
  };
  const auto set_and = [&](const Event& event) {
    return room_for(driver, [&](CUstream stream) {
      set(stream);
      CALL(driver, cuEventRecord, event.get(), stream);
    });
  };
  std::string found = "of 4 bytes " + room_for(driver, set);
  found += ", with an event " + set_and(spinning);
  found += ", with one to sleep on " + set_and(blocking);
  return found + "; host functions " + room_for(driver, [&](CUstream stream) {
           CALL(
               driver, cuLaunchHostFunc, stream, [](void*) {}, static_cast<void*>(nullptr));
         });
}

/// Returns whether the driver reports pending work for the stream or event. `busy` is the stream
/// that it would wait for, queried afterwards: beside an idle stream the answer means nothing.
std::string pending(CUresult code, bool busy) {
  if (code == CUDA_ERROR_NOT_READY) return "waits";
  return busy ? "does not (" + std::to_string(code) + ")" : "cannot be told";
}

// The swap-in's fences depend on both answers: tools/preload/context/fence_due.hpp.
std::string beside_busy_legacy(const Driver& driver) {
  const Stream blocking(driver);
  const Event event(driver);
  spin(cudaStreamLegacy, BusyStream::kLongest);
  CALL(driver, cuEventRecord, event.get(), blocking.get());
  const CUresult code = RAW(driver, cuEventQuery, event.get());
  const CUstream legacy = CU_STREAM_LEGACY;
  const bool busy = RAW(driver, cuStreamQuery, legacy) == CUDA_ERROR_NOT_READY;
  CALL(driver, cuStreamSynchronize, legacy);
  return "an event on it " + pending(code, busy);
}

std::string legacy_beside_busy(const Driver& driver) {
  const BusyStream busy(driver, BusyWith::kKernel);
  const CUresult code = RAW(driver, cuStreamQuery, CUstream{CU_STREAM_LEGACY});
  return "the legacy stream " + pending(code, busy.is_busy());
}

constexpr std::array kBusyQuestions{
    Question{"a blocking stream, while the legacy stream is busy with a kernel",
             "an event on it waits", beside_busy_legacy, kMemoryIsEarly},
    Question{"cuStreamQuery of the legacy stream, while a blocking stream is busy with a kernel",
             "the legacy stream waits", legacy_beside_busy, kMemoryIsEarly},
    Question{"waits for a stream that is busy with a host function and does not use the memory",
             "(not documented)", waits_for_host_function},
    Question{"waits for a stream that is busy with a kernel and does not use the memory",
             "(not documented)", waits_for_kernel},
    Question{"operations that the queue of a busy stream takes before a call waits for room",
             "(not documented)", room_in_queue},
    Question{"a page alone, while a kernel runs on each of two streams", "(a cost)",
             cost_beside_kernels},
};

}  // namespace

std::span<const Question> busy_questions() { return kBusyQuestions; }

}  // namespace weir::gpu_check
