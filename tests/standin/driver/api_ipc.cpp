// Handles of memory for other processes. They can be made, and nobody can open them: the process
// that made one may not, as on a device, and another one has other memory.

#include <unistd.h>

#include <cstring>

#include "tests/standin/driver/memory.hpp"

namespace {

using namespace weir::standin;

/// What is in a handle's 64 bytes, in front of zeros.
struct Shared {
  char name[16];
  std::uint64_t process;
  std::uint64_t block;
};
constexpr char kName[16] = "weir stand-in";
static_assert(sizeof(Shared) <= sizeof(CUipcMemHandle));

bool is_shared_here(const Driver& driver, std::uint64_t number) {
  for (const auto& [base, block] : driver.blocks) {
    if (block.shared == number) return true;
  }
  return false;
}

}  // namespace

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  return api("cuIpcGetMemHandle", Needs::kContext, [&](Call& call) {
    Block* block = find_block(call.driver, pointer);
    if (handle == nullptr || block == nullptr || block->kind != BlockKind::kDevice) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (block->shared == 0) block->shared = call.driver.next_shared++;
    Shared shared{};
    std::memcpy(shared.name, kName, sizeof kName);
    shared.process = static_cast<std::uint64_t>(getpid());
    shared.block = block->shared;
    *handle = {};
    std::memcpy(handle, &shared, sizeof shared);
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  return api("cuIpcOpenMemHandle", Needs::kContext, [&](Call& call) {
    if (pointer == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    Shared shared{};
    std::memcpy(&shared, &handle, sizeof shared);
    if (std::memcmp(shared.name, kName, sizeof kName) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (shared.process != static_cast<std::uint64_t>(getpid())) return CUDA_ERROR_NOT_SUPPORTED;
    return is_shared_here(call.driver, shared.block) ? CUDA_ERROR_INVALID_CONTEXT
                                                     : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr) {
  return api("cuIpcCloseMemHandle", Needs::kContext,
             [](Call& /*call*/) { return CUDA_ERROR_INVALID_VALUE; });
}

}  // extern "C"
