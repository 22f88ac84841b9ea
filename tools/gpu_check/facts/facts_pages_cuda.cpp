// Pages mapped into reserved addresses: what the pool `paged` depends on, and the cost of moving a
// page.

#include "tools/gpu_check/facts/facts_pages_cuda.hpp"

#include <array>

#include "tools/gpu_check/facts/facts_clock.hpp"

namespace weir::gpu_check {
namespace {

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

/// Returns whether mappings made in a context can be removed after that context is gone.
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

/// Calls from a thread in relaxed mode, as our own calls are made.
std::string in_capture(const Driver& driver) {
  Pages pages(driver, 1);  // given back after the capture
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

constexpr std::size_t kCosted = 64;  // pages, one time each

std::string cost_alone(const Driver& driver) { return page_costs(driver, kCosted); }

/// Tells whether a call's cost grows with the bytes or with the number of pages.
std::string cost_of_large(const Driver& driver) {
  constexpr std::size_t kOfThem = 8;
  return page_costs(driver, kOfThem, 16);
}

std::string cost_of_unmapping_at_once(const Driver& driver) {
  Pages pages(driver, kCosted);
  Times unmap;
  for (std::size_t i = 0; i < kCosted; ++i) pages.create();
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < kCosted; ++i) pages.map(i);
    pages.allow(0, kCosted);
    unmap.measure([&] { check(pages.unmap_at_once(kCosted), "cuMemUnmap"); }, kCosted);
  }
  return "unmap " + unmap.text();
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

std::string second_mapping(const Driver& driver) {
  Pages pages(driver, 2);
  pages.map_one();
  if (const CUresult code = pages.try_map(1, 0); code != CUDA_SUCCESS) return code_text(code);
  pages.allow(1, 1);
  constexpr unsigned char kWritten = 7;
  unsigned char seen = 0;
  CALL(driver, cuMemsetD8, pages.at(0), kWritten, std::size_t{1});
  CALL(driver, cuMemcpyDtoH, static_cast<void*>(&seen), pages.at(1), std::size_t{1});
  return seen == kWritten ? "yes, and a write is seen at both"
                          : "yes, and a write is seen at one alone";
}

std::string cost_of_second(const Driver& driver) {
  Pages pages(driver, kCosted + 1);
  pages.map_one();
  Times map;
  Times allow;
  Times unmap;
  for (std::size_t i = 1; i <= kCosted; ++i) {
    map.measure([&] { check(pages.try_map(i, 0), "cuMemMap"); });
    allow.measure([&] { pages.allow(i, 1); });
  }
  for (std::size_t i = 1; i <= kCosted; ++i) unmap.measure([&] { pages.unmap(i); });
  return "map " + map.text() + ", set access " + allow.text() + ", unmap " + unmap.text();
}

constexpr std::array kPageQuestions{
    Question{"granularity of cuMemCreate", "2 MiB, recommended 2 MiB", granularities},
    Question{"cuMemUnmap of two neighbouring mappings at once", "yes", neighbours_at_once},
    Question{"cuMemGetAddressRange of a mapped address", "(not documented)", address_range},
    Question{"cuPointerGetAttribute of a reserved address without a page", "no, 1",
             unmapped_pointer},
    Question{"cuIpcGetMemHandle of a mapped page", "no, 1", shared_page},
    Question{"pages are unmapped and released when their context is gone", "yes", outlives_context,
             "pages may stay on the device and be in no budget"},
    Question{"pages are made, mapped and unmapped in relaxed mode during a global capture", "yes",
             in_capture, "an allocation may break a capture of the program"},
    Question{"a page alone", "(a cost)", cost_alone},
    Question{"each of 64 pages side by side, access set once", "(a cost)", cost_of_many},
    Question{"each of 64 pages side by side, unmapped at once", "(a cost)",
             cost_of_unmapping_at_once},
    Question{"a page of 32 MiB", "(a cost)", cost_of_large},
    Question{"a page is mapped at a second address", "yes, and a write is seen at both",
             second_mapping},
    Question{"a second mapping of a page", "(a cost)", cost_of_second},
};

}  // namespace

std::string page_costs(const Driver& driver, std::size_t count, std::size_t large) {
  Pages pages(driver, count, large);
  Times create;
  Times map;
  Times allow;
  Times unmap;
  Times release;
  for (std::size_t i = 0; i < count; ++i) create.measure([&] { pages.create(); });
  for (std::size_t i = 0; i < count; ++i) {
    map.measure([&] { pages.map(i); });
    allow.measure([&] { pages.allow(i, 1); });
  }
  for (std::size_t i = 0; i < count; ++i) unmap.measure([&] { pages.unmap(i); });
  for (std::size_t i = 0; i < count; ++i) release.measure([&] { pages.release(); });
  return "create " + create.text() + ", map " + map.text() + ", set access " + allow.text() +
         ", unmap " + unmap.text() + ", release " + release.text();
}

std::span<const Question> page_questions() { return kPageQuestions; }

}  // namespace weir::gpu_check
