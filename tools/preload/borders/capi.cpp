// The functions of weir.h, as the library exports them.

#define WEIR_LINKED
#include <algorithm>
#include <cstring>
#include <string>

#include "tools/preload/borders/marks.hpp"
#include "tools/preload/borders/weir.h"
#include "tools/preload/process/api.hpp"

namespace {

// Which of this thread's begins began a batch. Only those are ended inside, and the caller need not
// remember results.
constinit thread_local weir::preload::Marks begun;

}  // namespace

int weir_api_version() { return WEIR_API_VERSION; }

int weir_batch_begin(const char* kind) {
  const bool began = begun.remembers() && weir::preload::begin_batch(kind == nullptr ? "" : kind);
  begun.push(began);
  return began ? 1 : 0;
}

void weir_batch_end() {
  if (begun.pop()) weir::preload::end_batch();
}

int weir_memory_info(int device, weir_memory* out) {
  if (device < 0 || out == nullptr || out->size < sizeof(weir_memory)) return 0;
  weir::preload::MemoryInfo info{};
  if (!weir::preload::memory_info(device, info)) return 0;
  *out = {.size = sizeof(weir_memory),
          .total = info.total.count,
          .budget = info.budget.count,
          .allocated = info.allocated.count,
          .awaiting = info.awaiting.count,
          .cached = info.cached.count,
          .reserved = info.reserved.count,
          .passed = info.passed.count};
  return 1;
}

uint64_t weir_trim(int device) { return device < -1 ? 0 : weir::preload::trim(device).count; }

int weir_set_budget(int device, uint64_t bytes) {
  return device >= -1 && weir::preload::set_budget(device, {bytes}) ? 1 : 0;
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
