#include "tools/preload/hooks/hook_list.hpp"

#include <cuda.h>

#include <array>

namespace weir::preload {
namespace {

constexpr std::array kHooks{
#define HOOK(base, since, symbol, action, what) \
  Hook{#base, since, #symbol, nullptr, Action::action, what},
#define HOOK_STREAM(base, since, symbol, action, what) \
  Hook{#base, since, #symbol, #symbol "_ptsz", Action::action, what},
#define HOOK_PTDS(base, since, symbol, action, what) \
  Hook{#base, since, nullptr, #symbol "_ptds", Action::action, what},
#include "tools/preload/driver/hooks.inc"
};

constexpr std::array kNvmlHooks{
#define NVML_HOOK(symbol, what) NvmlHook{#symbol, what},
#include "tools/preload/driver/nvml_hooks.inc"
};

}  // namespace

std::span<const Hook> hooks() noexcept { return kHooks; }

std::span<const NvmlHook> nvml_hooks() noexcept { return kNvmlHooks; }

}  // namespace weir::preload
