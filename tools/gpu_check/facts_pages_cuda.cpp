// Pages that are mapped into reserved addresses: what the pool `paged` counts on, and what moving a
// page costs.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "tools/gpu_check/facts_driver_cuda.hpp"

namespace weir::gpu_check {
namespace {

using Clock = std::chrono::steady_clock;

CUmemAllocationProp of_first_device() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 0;
  return properties;
}

std::size_t granularity(const Driver& driver, CUmemAllocationGranularity_flags which) {
  const CUmemAllocationProp properties = of_first_device();
  std::size_t bytes = 0;
  CALL(driver, cuMemGetAllocationGranularity, &bytes, &properties, which);
  return bytes;
}

/// Some pages and a range for as many, for as long as a question takes.
class Pages {
 public:
  Pages(const Driver& driver, std::size_t count)
      : driver_(driver), page_(granularity(driver, CU_MEM_ALLOC_GRANULARITY_MINIMUM)) {
    CALL(driver_, cuMemAddressReserve, &range_, count * page_, std::size_t{0}, CUdeviceptr{0},
         0ULL);
    size_ = count * page_;
  }
  ~Pages() {
    for (const CUdeviceptr at : mapped_) (void)RAW(driver_, cuMemUnmap, at, page_);
    for (const CUmemGenericAllocationHandle page : pages_) (void)RAW(driver_, cuMemRelease, page);
    (void)RAW(driver_, cuMemAddressFree, range_, size_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] CUdeviceptr at(std::size_t n) const { return range_ + n * page_; }
  [[nodiscard]] std::size_t page() const { return page_; }

  void create() {
    const CUmemAllocationProp properties = of_first_device();
    CUmemGenericAllocationHandle page = 0;
    CALL(driver_, cuMemCreate, &page, page_, &properties, 0ULL);
    pages_.push_back(page);
  }
  void release() {
    CALL(driver_, cuMemRelease, pages_.back());
    pages_.pop_back();
  }
  /// Page n at the n-th place.
  void map(std::size_t n) {
    CALL(driver_, cuMemMap, at(n), page_, std::size_t{0}, pages_.at(n), 0ULL);
    mapped_.push_back(at(n));
  }
  void allow(std::size_t first, std::size_t count) {
    CUmemAccessDesc access{};
    access.location = of_first_device().location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CALL(driver_, cuMemSetAccess, at(first), count * page_, &access, std::size_t{1});
  }
  void unmap(std::size_t n) {
    CALL(driver_, cuMemUnmap, at(n), page_);
    std::erase(mapped_, at(n));
  }
  /// The first `count`, with one call; they have to be mapped.
  [[nodiscard]] CUresult unmap_at_once(std::size_t count) {
    const CUresult code = RAW(driver_, cuMemUnmap, range_, count * page_);
    if (code == CUDA_SUCCESS) mapped_.clear();
    return code;
  }
  /// One page, mapped, which the device may use.
  void map_one() {
    create();
    map(0);
    allow(0, 1);
  }

 private:
  const Driver& driver_;
  const std::size_t page_;
  CUdeviceptr range_ = 0;
  std::size_t size_ = 0;
  std::vector<CUmemGenericAllocationHandle> pages_;
  std::vector<CUdeviceptr> mapped_;
};

std::string in_mib(std::size_t bytes) {
  return std::to_string(bytes >> 20U) + " MiB" + (bytes % (1U << 20U) != 0 ? " and a part" : "");
}

std::string granularities(const Driver& driver) {
  return in_mib(granularity(driver, CU_MEM_ALLOC_GRANULARITY_MINIMUM)) + ", recommended " +
         in_mib(granularity(driver, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
}

std::string neighbours_at_once(const Driver& driver) {
  Pages pages(driver, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    pages.create();
    pages.map(i);
  }
  return code_text(pages.unmap_at_once(2));
}

std::string address_range(const Driver& driver) {
  Pages pages(driver, 3);
  for (std::size_t i = 0; i < 2; ++i) {
    pages.create();
    pages.map(i);
  }
  pages.allow(0, 2);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  const CUresult code = RAW(driver, cuMemGetAddressRange, &base, &bytes, pages.at(1) + 512);
  if (code != CUDA_SUCCESS) return code_text(code);
  if (base == pages.at(1) && bytes == pages.page()) return "its page";
  if (base == pages.at(0) && bytes == 2 * pages.page()) return "all that is mapped side by side";
  if (base == pages.at(0) && bytes == 3 * pages.page()) return "all that is reserved";
  return std::to_string(bytes) + " bytes, " + std::to_string(pages.at(1) - base) + " before it";
}

std::string shared_page(const Driver& driver) {
  Pages pages(driver, 1);
  pages.map_one();
  CUipcMemHandle handle{};
  return code_text(RAW(driver, cuIpcGetMemHandle, &handle, pages.at(0)));
}

std::string unmapped_pointer(const Driver& driver) {
  const Pages pages(driver, 1);
  unsigned int type = 0;
  return code_text(
      RAW(driver, cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pages.at(0)));
}

/// Whether what was mapped while a context was current can be given back when that is gone.
std::string outlives_context(const Driver& driver) {
  CUcontext context = nullptr;
#if CUDA_VERSION >= 13000
  CALL(driver, cuCtxCreate, &context, static_cast<CUctxCreateParams*>(nullptr), 0U, CUdevice{0});
#else
  CALL(driver, cuCtxCreate, &context, 0U, CUdevice{0});
#endif
  std::string found;
  try {
    Pages pages(driver, 1);
    pages.map_one();
    CALL(driver, cuCtxDestroy, context);
    context = nullptr;
    pages.unmap(0);
    pages.release();
    found = "yes";
  } catch (const Error& error) {
    found = std::string("no, ") + error.what();
  }
  if (context != nullptr) (void)RAW(driver, cuCtxDestroy, context);
  return found;
}

/// By a thread in relaxed mode, as our own calls are made.
std::string in_capture(const Driver& driver) {
  Pages pages(driver, 1);  // given back when the capture is over
  std::string found = "yes";
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CALL(driver, cuThreadExchangeStreamCaptureMode, &mode);
  (void)during_capture(driver, CU_STREAM_CAPTURE_MODE_GLOBAL, [&](CUstream) {
    try {
      pages.map_one();
      pages.unmap(0);
      pages.release();
    } catch (const Error& error) {
      found = std::string("no, ") + error.what();
    }
    return CUDA_SUCCESS;
  });
  CALL(driver, cuThreadExchangeStreamCaptureMode, &mode);
  return found;
}

/// A stream that has something to do until it is released, or for a tenth of a second.
class BusyStream {
 public:
  explicit BusyStream(const Driver& driver) : driver_(driver), stream_(driver) {
    CALL(driver_, cuLaunchHostFunc, stream_.get(), &BusyStream::run, static_cast<void*>(this));
  }
  ~BusyStream() {
    released_ = true;
    (void)RAW(driver_, cuStreamSynchronize, stream_.get());
  }
  BusyStream(const BusyStream&) = delete;
  BusyStream& operator=(const BusyStream&) = delete;

  static constexpr auto kLongest = std::chrono::milliseconds(100);

 private:
  static void run(void* self) {
    const auto& released = static_cast<BusyStream*>(self)->released_;
    const auto end = Clock::now() + kLongest;
    while (!released && Clock::now() < end) std::this_thread::yield();
  }

  const Driver& driver_;
  const Stream stream_;
  std::atomic<bool> released_ = false;
};

/// Which of the calls wait for a stream that does not use the page.
std::string what_waits(const Driver& driver) {
  Pages pages(driver, 1);
  std::string all;
  const auto look = [&](const char* name, const auto& call) {
    const BusyStream busy(driver);
    const auto start = Clock::now();
    call();
    const bool waited = Clock::now() - start > BusyStream::kLongest / 2;
    all += (all.empty() ? "" : ", ") + std::string(name) + (waited ? " waits" : " does not");
  };
  look("create", [&] { pages.create(); });
  look("map", [&] { pages.map(0); });
  look("set access", [&] { pages.allow(0, 1); });
  look("unmap", [&] { pages.unmap(0); });
  look("release", [&] { pages.release(); });
  return all;
}

/// What was measured, for people: the median of all.
class Times {
 public:
  template <typename Call>
  void measure(const Call& call, std::size_t parts = 1) {
    const auto start = Clock::now();
    call();
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    times_.push_back(took.count() / static_cast<double>(parts));
  }
  [[nodiscard]] std::string text() {
    if (times_.empty()) return "?";
    const auto middle = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() / 2);
    std::nth_element(times_.begin(), middle, times_.end());
    std::array<char, 32> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.1f us", *middle);
    return buffer.data();
  }

 private:
  std::vector<double> times_;
};

constexpr std::size_t kCosted = 64;  // pages, each a time

std::string cost_alone(const Driver& driver) {
  Pages pages(driver, kCosted);
  Times create;
  Times map;
  Times allow;
  Times unmap;
  Times release;
  for (std::size_t i = 0; i < kCosted; ++i) create.measure([&] { pages.create(); });
  for (std::size_t i = 0; i < kCosted; ++i) {
    map.measure([&] { pages.map(i); });
    allow.measure([&] { pages.allow(i, 1); });
  }
  for (std::size_t i = 0; i < kCosted; ++i) unmap.measure([&] { pages.unmap(i); });
  for (std::size_t i = 0; i < kCosted; ++i) release.measure([&] { pages.release(); });
  return "create " + create.text() + ", map " + map.text() + ", set access " + allow.text() +
         ", unmap " + unmap.text() + ", release " + release.text();
}

std::string cost_of_many(const Driver& driver) {
  Pages pages(driver, kCosted);
  Times map;
  Times allow;
  Times unmap;
  for (std::size_t i = 0; i < kCosted; ++i) pages.create();
  for (int round = 0; round < 5; ++round) {
    map.measure(
        [&] {
          for (std::size_t i = 0; i < kCosted; ++i) pages.map(i);
        },
        kCosted);
    allow.measure([&] { pages.allow(0, kCosted); }, kCosted);
    unmap.measure(
        [&] {
          for (std::size_t i = 0; i < kCosted; ++i) pages.unmap(i);
        },
        kCosted);
  }
  return "map " + map.text() + ", set access " + allow.text() + ", unmap " + unmap.text();
}

constexpr std::array kPageQuestions{
    Question{"granularity of cuMemCreate", "2 MiB, recommended 2 MiB", granularities},
    Question{"cuMemUnmap of two neighbouring mappings at once", "no, 1", neighbours_at_once},
    Question{"cuMemGetAddressRange of a mapped address", "(not documented)", address_range},
    Question{"cuPointerGetAttribute of a reserved address without a page", "no, 1",
             unmapped_pointer},
    Question{"cuIpcGetMemHandle of a mapped page", "no, 1", shared_page},
    Question{"pages are unmapped and released when their context is gone", "yes", outlives_context},
    Question{"pages are made, mapped and unmapped in relaxed mode during a global capture", "yes",
             in_capture},
    Question{"waits for a busy stream that does not use the page", "(not documented)", what_waits},
    Question{"a page alone", "(a cost)", cost_alone},
    Question{"each of 64 pages side by side, access set once", "(a cost)", cost_of_many},
};

}  // namespace

std::span<const Question> page_questions() { return kPageQuestions; }

}  // namespace weir::gpu_check
