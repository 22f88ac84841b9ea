// Handles of memory and events for other processes. As on a device, the creating process may not
// open one. Another one can if the memory was made for that (shared_memory.hpp).

#include <unistd.h>

#include <cstring>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/memory/shared_memory.hpp"
#include "tests/standin/driver/streams/stream.hpp"

namespace {

using namespace weir::standin;

/// The contents of a handle's 64 bytes, before zeros.
struct Shared {
  char name[16];
  std::uint64_t process;
  std::uint64_t block;
  std::int64_t descriptor;  ///< -1: nobody can open it
  std::uint64_t bytes;
};
constexpr char kName[16] = "weir stand-in";
constexpr char kEventName[16] = "weir event";
static_assert(sizeof(Shared) <= sizeof(CUipcMemHandle));

bool is_shared_here(const Driver& driver, std::uint64_t number) {
  for (const auto& [base, block] : driver.blocks) {
    if (block.shared == number) return true;
  }
  return false;
}

/// Opening it again gives the same memory, which must be closed as often.
CUresult import(Call& call, const Shared& shared, CUdeviceptr* pointer) {
  for (auto& [base, block] : call.driver.blocks) {
    if (block.kind != BlockKind::kImported || block.shared != shared.block ||
        block.owner != shared.process) {
      continue;
    }
    ++block.opened;
    *pointer = base;
    return CUDA_SUCCESS;
  }
  if (shared.descriptor < 0) return CUDA_ERROR_NOT_SUPPORTED;
  void* const memory =
      map_shared({shared.process, static_cast<int>(shared.descriptor), shared.bytes});
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  add_block(call.driver, *pointer,
            {.kind = BlockKind::kImported,
             .bytes = shared.bytes,
             .context = call.context,
             .shared = shared.block,
             .owner = shared.process,
             .opened = 1});
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  return api("cuIpcGetMemHandle", Needs::kContext, [&](Call& call) {
    std::uintptr_t base = 0;
    Block* block = find_block(call.driver, pointer, &base);
    if (handle == nullptr || block == nullptr || block->kind != BlockKind::kDevice) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (block->shared == 0) block->shared = call.driver.next_shared++;
    Shared shared{};
    std::memcpy(shared.name, kName, sizeof kName);
    shared.process = static_cast<std::uint64_t>(getpid());
    shared.block = block->shared;
    const auto file = file_of(reinterpret_cast<void*>(base));
    shared.descriptor = file ? file->descriptor : -1;
    shared.bytes = file ? file->bytes : 0;
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
    if (shared.process != static_cast<std::uint64_t>(getpid()))
      return import(call, shared, pointer);
    return is_shared_here(call.driver, shared.block) ? CUDA_ERROR_INVALID_CONTEXT
                                                     : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  return api("cuIpcCloseMemHandle", Needs::kContext, [&](Call& call) {
    const auto found = call.driver.blocks.find(pointer);
    if (found == call.driver.blocks.end() || found->second.kind != BlockKind::kImported) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (--found->second.opened == 0) release_block(call.driver, pointer);
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  constexpr unsigned kNeeded = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  return api("cuIpcGetEventHandle", Needs::kContext, [&](Call& call) {
    const auto* const found = call.driver.events.find(event);
    if (handle == nullptr || found == nullptr || ((*found)->flags & kNeeded) != kNeeded) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    // Another process cannot query this one's streams, so the wait for the event is here.
    if ((*found)->record) wait_for(call, {(*found)->record->point});
    Shared shared{};
    std::memcpy(shared.name, kEventName, sizeof kEventName);
    shared.process = static_cast<std::uint64_t>(getpid());
    *handle = {};
    std::memcpy(handle, &shared, sizeof shared);
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  return api("cuIpcOpenEventHandle", Needs::kContext, [&](Call& call) {
    Shared shared{};
    std::memcpy(&shared, &handle, sizeof shared);
    if (event == nullptr || std::memcmp(shared.name, kEventName, sizeof kEventName) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (shared.process == static_cast<std::uint64_t>(getpid())) return CUDA_ERROR_INVALID_CONTEXT;
    auto made = std::make_shared<Event>();
    made->context = call.context;
    made->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
    *event = call.driver.events.add(std::move(made));
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
