// Shares memory of pools with other processes.

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "allocator/base/log.hpp"
#include "tools/preload/context/pages.hpp"
#include "tools/preload/driver/call.hpp"
#include "tools/preload/process/api.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {
namespace {

std::optional<SharedMemory> share_pages(ContextPages& pages, const BlockInUse& block) {
  const std::uint64_t page = pages.page_size().count;
  const auto address = reinterpret_cast<std::uintptr_t>(block.begin);
  const std::uintptr_t begin = address / page * page;
  const std::uintptr_t end = (address + block.size.count + page - 1) / page * page;
  auto files = pages.files_of(begin, end);
  if (!files) return std::nullopt;
  return SharedMemory{.base = begin,
                      .size = {end - begin},
                      .page = {page},
                      .handle = {},
                      .files = std::move(*files)};
}

std::optional<SharedMemory> share_segment(const Driver& driver, CUcontext context,
                                          const BlockInUse& block) {
  const Inside inside;
  const ContextScope scope(driver, context);
  if (!scope.good()) return std::nullopt;
  SharedMemory shared;
  CUdeviceptr base = 0;
  std::size_t size = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(block.begin);
  if (driver.cuMemGetAddressRange_v2(&base, &size, address) != CUDA_SUCCESS ||
      driver.cuIpcGetMemHandle(&shared.handle, base) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  shared.base = base;
  shared.size = {size};
  return shared;
}

}  // namespace

void allow_sharing() noexcept { ContextPages::share_new_ones(); }

std::optional<SharedMemory> share(void* pointer) noexcept {
  const Call call;
  Process* const process = Process::get_if_any();
  if (process == nullptr || pointer == nullptr) return std::nullopt;
  try {
    for (Arena* const arena : process->contexts().all()) {
      const auto block = arena->pool().find(pointer);
      if (!block) continue;
      DriverUpstream& upstream = arena->upstream();
      return upstream.is_paged(reinterpret_cast<CUdeviceptr>(pointer))
                 ? share_pages(*upstream.pages(), *block)
                 : share_segment(process->driver(), arena->context(), *block);
    }
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("memory is not shared: ") + error.what());
  }
  return std::nullopt;
}

}  // namespace weir::preload
