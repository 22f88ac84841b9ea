// NVTX ranges as batches, for programs that already have them. NVTX loads the library that
// NVTX_INJECTION64_PATH names and calls its InitializeInjectionNvtx2 with access to the function
// tables. The program's NVTX calls reach the functions that we put there.
//
// Each library that uses NVTX does this separately, possibly before CUDA is used.

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tools/preload/borders/nvtx_ranges.hpp"

namespace weir::preload {
namespace {

// WEIR_BATCH_RANGE. Null until NVTX asks for this library, then never changed or freed.
constinit std::atomic<const char*> batch_name{nullptr};
// The handle returned for a registered string that is the batch's name. Other strings get null, as
// without a tool.
constinit char registered_name = 0;
constinit std::atomic<std::uintptr_t> last_domain{0};

const char* name_in_force() noexcept { return batch_name.load(std::memory_order_acquire); }

// Copied, because a program may change its environment.
bool read_name() noexcept {
  if (name_in_force() != nullptr) return true;
  const char* const text = std::getenv("WEIR_BATCH_RANGE");
  if (text == nullptr || *text == '\0') return false;
  char* const copy = strdup(text);
  if (copy == nullptr) return false;
  const char* none = nullptr;
  if (!batch_name.compare_exchange_strong(none, copy, std::memory_order_acq_rel)) std::free(copy);
  return true;
}

// Returns the batch's name if `name` equals it, otherwise null.
template <typename Character>
const char* batch_of(const Character* name) noexcept {
  const char* const batch = name_in_force();
  return is_name(name, batch) ? batch : nullptr;
}

const char* batch_of(const nvtxEventAttributes_t* event) noexcept {
  constexpr std::size_t kLeast = offsetof(nvtxEventAttributes_t, message) + sizeof(event->message);
  if (event == nullptr || event->size < kLeast) return nullptr;
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return batch_of(event->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
      return batch_of(event->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return static_cast<const void*>(event->message.registered) == &registered_name
                 ? name_in_force()
                 : nullptr;
    default:
      return nullptr;
  }
}

template <typename Character>
nvtxStringHandle_t register_string(nvtxDomainHandle_t /*domain*/, const Character* text) {
  return batch_of(text) == nullptr ? nullptr
                                   : reinterpret_cast<nvtxStringHandle_t>(&registered_name);
}

// A domain's handle is its number, from 1. The null handle is the default domain.
template <typename Character>
nvtxDomainHandle_t create_domain(const Character* /*name*/) {
  return reinterpret_cast<nvtxDomainHandle_t>(last_domain.fetch_add(1) + 1);
}

std::uint64_t number(nvtxDomainHandle_t domain) noexcept {
  return reinterpret_cast<std::uintptr_t>(domain);
}

template <typename Name>
int push(const Name* name) {
  return push_range(0, batch_of(name));
}
int pop() { return pop_range(0); }
template <typename Name>
nvtxRangeId_t start(const Name* name) {
  return start_range(batch_of(name));
}
void end(nvtxRangeId_t range) { end_range(range); }

int push_in(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return push_range(number(domain), batch_of(event));
}
int pop_in(nvtxDomainHandle_t domain) { return pop_range(number(domain)); }
nvtxRangeId_t start_in(nvtxDomainHandle_t /*domain*/, const nvtxEventAttributes_t* event) {
  return start_range(batch_of(event));
}
void end_in(nvtxDomainHandle_t /*domain*/, nvtxRangeId_t range) { end_range(range); }

// The program's function table of one module.
class Module {
 public:
  Module(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module) noexcept {
    if (callbacks.GetModuleFunctionTable(module, &table_, &size_) != 1) size_ = 0;
  }
  // Names NVTX's function type, so that a function of another type does not compile.
  template <typename Function>
  void set(unsigned id, Function function) const noexcept {
    if (id < size_) *table_[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  }

 private:
  NvtxFunctionTable table_ = nullptr;
  unsigned size_ = 0;
};

void install_core(const NvtxExportTableCallbacks& callbacks) noexcept {
  const Module core(callbacks, NVTX_CB_MODULE_CORE);
  using Event = nvtxEventAttributes_t;
  core.set<nvtxRangePushEx_impl_fntype>(NVTX_CBID_CORE_RangePushEx, push<Event>);
  core.set<nvtxRangePushA_impl_fntype>(NVTX_CBID_CORE_RangePushA, push<char>);
  core.set<nvtxRangePushW_impl_fntype>(NVTX_CBID_CORE_RangePushW, push<wchar_t>);
  core.set<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop, pop);
  core.set<nvtxRangeStartEx_impl_fntype>(NVTX_CBID_CORE_RangeStartEx, start<Event>);
  core.set<nvtxRangeStartA_impl_fntype>(NVTX_CBID_CORE_RangeStartA, start<char>);
  core.set<nvtxRangeStartW_impl_fntype>(NVTX_CBID_CORE_RangeStartW, start<wchar_t>);
  core.set<nvtxRangeEnd_impl_fntype>(NVTX_CBID_CORE_RangeEnd, end);
}

void install_core2(const NvtxExportTableCallbacks& callbacks) noexcept {
  const Module core(callbacks, NVTX_CB_MODULE_CORE2);
  core.set<nvtxDomainRangePushEx_impl_fntype>(NVTX_CBID_CORE2_DomainRangePushEx, push_in);
  core.set<nvtxDomainRangePop_impl_fntype>(NVTX_CBID_CORE2_DomainRangePop, pop_in);
  core.set<nvtxDomainRangeStartEx_impl_fntype>(NVTX_CBID_CORE2_DomainRangeStartEx, start_in);
  core.set<nvtxDomainRangeEnd_impl_fntype>(NVTX_CBID_CORE2_DomainRangeEnd, end_in);
  core.set<nvtxDomainRegisterStringA_impl_fntype>(NVTX_CBID_CORE2_DomainRegisterStringA,
                                                  register_string<char>);
  core.set<nvtxDomainRegisterStringW_impl_fntype>(NVTX_CBID_CORE2_DomainRegisterStringW,
                                                  register_string<wchar_t>);
  core.set<nvtxDomainCreateA_impl_fntype>(NVTX_CBID_CORE2_DomainCreateA, create_domain<char>);
  core.set<nvtxDomainCreateW_impl_fntype>(NVTX_CBID_CORE2_DomainCreateW, create_domain<wchar_t>);
}

}  // namespace
}  // namespace weir::preload

/// NVTX calls this once for each library that uses it. Returns 1 if installed; 0 without
/// WEIR_BATCH_RANGE or for an unknown NVTX version, whose functions then do nothing.
extern "C" __attribute__((visibility("default"))) int
InitializeInjectionNvtx2(  // NOLINT(readability-identifier-naming): NVTX looks it up
    NvtxGetExportTableFunc_t get_table) {
  if (get_table == nullptr || !weir::preload::read_name()) return 0;
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks)) return 0;
  weir::preload::install_core(*callbacks);
  weir::preload::install_core2(*callbacks);
  return 1;
}
