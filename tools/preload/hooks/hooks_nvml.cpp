// What NVML tells the program of its own memory. NVML knows no budgets and counts the pools' cache
// as used; with these hooks it gives the same answer as cuMemGetInfo.

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "allocator/base/log.hpp"
#include "tools/preload/driver/call.hpp"
#include "tools/preload/driver/nvml.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {
namespace {

/// Calls NVML's own function and returns its code. NVML's internal calls are passed.
template <typename F, typename... Args>
int pass_nvml(F Nvml::*function, Args... args) noexcept {
  const Nvml* const library = nvml();
  if (library == nullptr) return kNvmlUninitialized;
  if (library->*function == nullptr) return kNvmlFunctionNotFound;
  const Inside inside;
  return (library->*function)(args...);
}

/// Returns what the program is told instead. Nothing if NVML must answer: the program uses no CUDA
/// or not this device yet, or asked for NVML's figures.
std::optional<BudgetView> view_of(void* device, Bytes free, Bytes total) noexcept {
  const Call call;
  // Never the first call to set up: a program that only looks at devices stays unchanged.
  Process* const process = Process::get_if_any();
  const Nvml* const library = process != nullptr ? nvml() : nullptr;
  if (library == nullptr || process->settings().nvml.value == NvmlAnswers::kReal) return {};
  const auto number = cuda_device_of(*library, device, process->driver());
  Device* const its = number ? process->devices().without_attaching(*number) : nullptr;
  if (its == nullptr) return {};
  return attempt<std::optional<BudgetView>>(
      LogLevel::kDebug, "NVML's own figures are reported", {},
      [&]() -> std::optional<BudgetView> { return its->view(free, total); });
}

template <typename Info>
void tell_own_memory(void* device, unsigned count, Info* processes) noexcept {
  const auto own = static_cast<unsigned>(getpid());
  Info* const end = processes + count;
  Info* const found =
      std::find_if(processes, end, [own](const Info& each) { return each.pid == own; });
  if (found == end) return;
  if (const auto view = view_of(device, {}, {})) found->used = view->held.count;
}

template <typename F, typename Info>
int running_processes(F Nvml::*function, void* device, unsigned* count, Info* processes) noexcept {
  const int code = pass_nvml(function, device, count, processes);
  if (code == kNvmlSuccess && count != nullptr && processes != nullptr) {
    tell_own_memory(device, *count, processes);
  }
  return code;
}

}  // namespace
}  // namespace weir::preload

using namespace weir::preload;

extern "C" {

int nvmlDeviceGetMemoryInfo(void* device, NvmlMemory* memory) {
  const int code = pass_nvml(&Nvml::nvmlDeviceGetMemoryInfo, device, memory);
  if (code != kNvmlSuccess || memory == nullptr) return code;
  if (const auto view = view_of(device, {memory->free}, {memory->total})) {
    *memory = {.total = view->total.count,
               .free = view->free.count,
               .used = view->total.count - view->free.count};
  }
  return code;
}

int nvmlDeviceGetMemoryInfo_v2(void* device, NvmlMemoryV2* memory) {
  const int code = pass_nvml(&Nvml::nvmlDeviceGetMemoryInfo_v2, device, memory);
  if (code != kNvmlSuccess || memory == nullptr) return code;
  if (const auto view = view_of(device, {memory->free}, {memory->total})) {
    // The system's part is not in the budget.
    *memory = {.version = memory->version,
               .total = view->total.count,
               .reserved = 0,
               .free = view->free.count,
               .used = view->total.count - view->free.count};
  }
  return code;
}

int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, NvmlProcessV1* processes) {
  return running_processes(&Nvml::nvmlDeviceGetComputeRunningProcesses, device, count, processes);
}

int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, NvmlProcess* processes) {
  return running_processes(&Nvml::nvmlDeviceGetComputeRunningProcesses_v2, device, count,
                           processes);
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, NvmlProcess* processes) {
  return running_processes(&Nvml::nvmlDeviceGetComputeRunningProcesses_v3, device, count,
                           processes);
}

}  // extern "C"
