// The functions of weir.h, as the library exports them.

#define WEIR_LINKED
#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "allocator/base/version.hpp"
#include "tools/preload/borders/version_mark.hpp"
#include "tools/preload/borders/weir.h"
#include "tools/preload/driver/this_thread.hpp"
#include "tools/preload/process/api.hpp"

namespace {

/// Read from the file, and by no code.
[[gnu::used]] constinit const auto kVersionText = [] {
  using weir::preload::kVersionMark;
  std::array<char, kVersionMark.size() + weir::kVersion.size() + 1> text{};
  std::copy(weir::kVersion.begin(), weir::kVersion.end(),
            std::copy(kVersionMark.begin(), kVersionMark.end(), text.begin()));
  return text;
}();

constexpr std::size_t kMemoryOfVersion1 = offsetof(weir_memory, allocated_peak);
constexpr std::size_t kBlockOfVersion4 = sizeof(weir_block);

std::uint32_t state_of(weir::PoolBlock::State state) {
  switch (state) {
    case weir::PoolBlock::State::kAllocated:
      return WEIR_ALLOCATED;
    case weir::PoolBlock::State::kAwaiting:
      return WEIR_AWAITING;
    case weir::PoolBlock::State::kCached:
      return WEIR_CACHED;
  }
  return 0;
}

weir_block as_block(const weir::preload::MemoryBlock& each) {
  return {.segment = each.segment,
          .segment_size = each.segment_size.count,
          .address = each.block.begin,
          .size = each.block.size.count,
          .requested = each.block.requested.count,
          .stream = reinterpret_cast<std::uintptr_t>(each.stream),
          .state = state_of(each.block.state),
          .unused = 0};
}

}  // namespace

int weir_api_version() { return WEIR_API_VERSION; }

// Remembers which of this thread's begins began a batch: only those are ended inside, and the
// caller need not remember results.
int weir_batch_begin(const char* kind) {
  auto& begun = weir::preload::this_thread.begun;
  const bool began = begun.remembers() && weir::preload::begin_batch(kind == nullptr ? "" : kind);
  begun.push(began);
  return began ? 1 : 0;
}

void weir_batch_end() {
  if (weir::preload::this_thread.begun.pop()) weir::preload::end_batch();
}

int weir_memory_info(int device, weir_memory* out) {
  if (device < 0 || out == nullptr || out->size < kMemoryOfVersion1) return 0;
  weir::preload::MemoryInfo info{};
  if (!weir::preload::memory_info(device, info)) return 0;
  const std::size_t size = std::min(out->size, sizeof(weir_memory)) / sizeof(std::uint64_t) *
                           sizeof(std::uint64_t);  // no field in part
  const weir_memory filled{.size = size,
                           .total = info.total.count,
                           .budget = info.budget.count,
                           .allocated = info.allocated.count,
                           .awaiting = info.awaiting.count,
                           .cached = info.cached.count,
                           .reserved = info.reserved.count,
                           .passed = info.passed.count,
                           .allocated_peak = info.allocated_peak.count,
                           .reserved_peak = info.reserved_peak.count};
  std::memcpy(out, &filled, size);
  return 1;
}

uint64_t weir_trim(int device) { return device < -1 ? 0 : weir::preload::trim(device).count; }

int weir_set_budget(int device, uint64_t bytes) {
  return device >= -1 && weir::preload::set_budget(device, {bytes}) ? 1 : 0;
}

int weir_set_fraction(int device, double fraction) {
  return device >= 0 && weir::preload::set_fraction(device, fraction) ? 1 : 0;
}

int weir_reset_peaks(int device) {
  return device >= 0 && weir::preload::reset_peaks(device) ? 1 : 0;
}

void* weir_allocate(int device, size_t bytes, void* stream) {
  if (device < 0 || bytes == 0) return nullptr;
  return weir::preload::allocate_on(device, bytes, static_cast<CUstream>(stream));
}

void weir_free(int device, void* pointer, void* stream) {
  if (device < 0 || pointer == nullptr) return;
  weir::preload::free_on(device, pointer, static_cast<CUstream>(stream));
}

void weir_record_use(void* pointer, void* stream) {
  if (pointer == nullptr) return;
  weir::preload::record_use_on(-1, pointer, static_cast<CUstream>(stream));
}

void weir_allow_sharing() { weir::preload::allow_sharing(); }

int weir_share(void* pointer, weir_shared* out, int* files, size_t count) {
  if (out == nullptr || out->size < sizeof(weir_shared)) return 0;
  const auto shared = weir::preload::share(pointer);
  if (!shared) return 0;
  *out = {.size = sizeof(weir_shared),
          .base = shared->base,
          .bytes = shared->size.count,
          .page = shared->page.count,
          .handle = {}};
  static_assert(sizeof out->handle == sizeof shared->handle);
  std::memcpy(out->handle, &shared->handle, sizeof shared->handle);
  std::copy_n(shared->files.begin(), std::min(count, shared->files.size()), files);
  return 1;
}

size_t weir_blocks(int device, weir_block* blocks, size_t count, size_t block_size) {
  if (device < 0 || block_size < kBlockOfVersion4) return 0;
  const auto all = weir::preload::memory_blocks(device);
  auto* place = reinterpret_cast<std::byte*>(blocks);
  for (size_t i = 0; i < std::min(count, all.size()); ++i, place += block_size) {
    const weir_block filled = as_block(all[i]);
    std::memcpy(place, &filled, sizeof filled);
    std::memset(place + sizeof filled, 0, block_size - sizeof filled);
  }
  return all.size();
}

int weir_timeline_start(const char* file) {
  return weir::preload::start_timeline(file == nullptr ? "" : file) ? 1 : 0;
}

void weir_timeline_stop() { weir::preload::stop_timeline(); }

size_t weir_settings(char* text, size_t size) {
  const std::string all = weir::preload::settings_text();
  if (text != nullptr && size > 0) {
    const size_t copied = std::min(all.size(), size - 1);
    std::memcpy(text, all.data(), copied);
    text[copied] = '\0';
  }
  return all.size();
}
