// Memory and events for other processes: handles, and memory that another process can map, each
// block of which is an unnamed file. As on a device, the creating process may not open a handle.
// Another one can if the memory was made for that.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"

namespace weir::standin {
namespace {

std::map<const void*, SharedFile>& files() {
  static auto* const kFiles = new std::map<const void*, SharedFile>;
  return *kFiles;
}

void* map_file(int descriptor, std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

/// Returns nothing for memory that is not from `take_shareable`.
std::optional<SharedFile> file_of(const void* memory) {
  const auto found = files().find(memory);
  return found == files().end() ? std::nullopt : std::optional(found->second);
}

/// Maps another process's memory until munmap; null if it is gone.
void* map_shared(const SharedFile& file) {
  const std::string path =
      "/proc/" + std::to_string(file.process) + "/fd/" + std::to_string(file.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat about {};
  // The descriptor may be another file's by now.
  const bool same = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
                    static_cast<std::uint64_t>(about.st_size) == file.bytes;
  void* memory = same ? map_file(descriptor, file.bytes) : nullptr;
  close(descriptor);
  return memory;
}

/// The contents of a handle's 64 bytes, before zeros.
struct Shared {
  std::array<char, 16> name{};
  std::uint64_t process = 0;
  std::uint64_t block = 0;
  std::int64_t descriptor = -1;  ///< -1: nobody can open it
  std::uint64_t bytes = 0;
};
constexpr std::array<char, 16> kMemory{"weir stand-in"};
constexpr std::array<char, 16> kEvent{"weir event"};
static_assert(sizeof(Shared) <= sizeof(CUipcMemHandle));

std::uint64_t this_process() { return static_cast<std::uint64_t>(getpid()); }

template <typename Handle>
Handle to_handle(const Shared& shared) {
  Handle handle{};
  std::memcpy(&handle, &shared, sizeof shared);
  return handle;
}

template <typename Handle>
Shared from_handle(const Handle& handle, const std::array<char, 16>& name) {
  Shared shared;
  std::memcpy(static_cast<void*>(&shared), &handle, sizeof shared);
  require(shared.name == name);
  return shared;
}

/// Opening it again gives the same memory, which must be closed as often.
CUdeviceptr import(Call& call, const Shared& shared) {
  for (auto& [base, block] : call.driver.blocks) {
    if (block.kind != BlockKind::kImported || block.shared != shared.block ||
        block.owner != shared.process) {
      continue;
    }
    ++block.opened;
    return base;
  }
  require(shared.descriptor >= 0, CUDA_ERROR_NOT_SUPPORTED);
  void* const memory =
      map_shared({shared.process, static_cast<int>(shared.descriptor), shared.bytes});
  require(memory != nullptr);
  const auto pointer = reinterpret_cast<CUdeviceptr>(memory);
  add_block(call.driver, pointer,
            {.kind = BlockKind::kImported,
             .bytes = shared.bytes,
             .context = call.context,
             .shared = shared.block,
             .owner = shared.process,
             .opened = 1});
  return pointer;
}

}  // namespace

void* take_shareable(std::size_t bytes) {
  const int descriptor = memfd_create("weir stand-in", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  void* memory = nullptr;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) memory = map_file(descriptor, bytes);
  if (memory == nullptr) {
    close(descriptor);
    return nullptr;
  }
  files().emplace(memory, SharedFile{static_cast<std::uint64_t>(getpid()), descriptor, bytes});
  return memory;
}

bool give_shareable(const void* memory) {
  const auto found = files().find(memory);
  if (found == files().end()) return false;
  close(found->second.descriptor);
  files().erase(found);
  return true;
}

}  // namespace weir::standin

extern "C" {

using namespace weir::standin;

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  return api("cuIpcGetMemHandle", Needs::kContext, [&](Call& call) {
    std::uintptr_t base = 0;
    Block* block = find_block(call.driver, pointer, &base);
    require(handle != nullptr && block != nullptr && block->kind == BlockKind::kDevice);
    if (block->shared == 0) block->shared = call.driver.next_shared++;
    const SharedFile file = file_of(reinterpret_cast<void*>(base)).value_or(SharedFile{});
    *handle = to_handle<CUipcMemHandle>(
        {kMemory, this_process(), block->shared, file.descriptor, file.bytes});
  });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  return api("cuIpcOpenMemHandle", Needs::kContext, [&](Call& call) {
    require(pointer != nullptr && flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    const Shared shared = from_handle(handle, kMemory);
    if (shared.process == this_process()) {
      require(std::ranges::any_of(call.driver.blocks, [&](const auto& entry) {
        return entry.second.shared == shared.block;
      }));
      pass(CUDA_ERROR_INVALID_CONTEXT);
    }
    *pointer = import(call, shared);
  });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  return api("cuIpcCloseMemHandle", Needs::kContext, [&](Call& call) {
    const auto found = call.driver.blocks.find(pointer);
    require(found != call.driver.blocks.end() && found->second.kind == BlockKind::kImported);
    if (--found->second.opened == 0) release_block(call.driver, pointer);
  });
}

constexpr unsigned kShareableEvent = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event_handle) {
  return api("cuIpcGetEventHandle", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Event> event = get_event(call.driver, event_handle);
    require(handle != nullptr && (event->flags & kShareableEvent) == kShareableEvent,
            CUDA_ERROR_INVALID_HANDLE);
    // Another process cannot query this one's streams, so the wait for the event is here.
    if (event->record) wait_for(call, {event->record->point});
    *handle = to_handle<CUipcEventHandle>({.name = kEvent, .process = this_process()});
  });
}

CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  return api("cuIpcOpenEventHandle", Needs::kContext, [&](Call& call) {
    require(event != nullptr);
    require(from_handle(handle, kEvent).process != this_process(), CUDA_ERROR_INVALID_CONTEXT);
    auto made = std::make_shared<Event>();
    made->context = call.context;
    made->flags = kShareableEvent;
    *event = call.driver.events.add(std::move(made));
  });
}

}  // extern "C"
