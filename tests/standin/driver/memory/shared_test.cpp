// Handles of memory for other processes, and memory shared by two. The second one is this program
// again, with only the test below and the handles in its environment.

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/standin/fixture.hpp"
#include "tests/support/child_process.hpp"

namespace weir::standin::testing {
namespace {

constexpr const char* kMemory = "WEIR_TEST_MEMORY_HANDLE";
constexpr const char* kEvent = "WEIR_TEST_EVENT_HANDLE";
constexpr std::size_t kBytes = 3 * kMiB;

template <typename Handle>
std::string to_text(const Handle& handle) {
  static constexpr const char* kDigits = "0123456789abcdef";
  std::array<unsigned char, sizeof handle> bytes{};
  std::memcpy(bytes.data(), &handle, sizeof handle);
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

template <typename Handle>
Handle from_text(const std::string& text) {
  std::array<unsigned char, sizeof(Handle)> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes.at(i) = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  Handle handle{};
  std::memcpy(&handle, bytes.data(), sizeof handle);
  return handle;
}

class StandInIpc : public StandIn {
 protected:
  static std::vector<char> handle_of(void* pointer) {
    cudaIpcMemHandle_t handle{};
    ok(cudaIpcGetMemHandle(&handle, pointer));
    return {handle.reserved, handle.reserved + sizeof handle.reserved};
  }
};

TEST_F(StandInIpc, AHandleIsThatOfTheWholeAllocation) {
  unsigned char* memory = make_memory(4096);
  unsigned char* other = make_memory(4096);
  const std::vector<char> handle = handle_of(memory);
  EXPECT_EQ(handle.size(), 64U);
  EXPECT_EQ(handle_of(memory), handle);
  EXPECT_EQ(handle_of(memory + 4095), handle);
  EXPECT_NE(handle_of(other), handle);
  ok(cudaFree(memory));
  EXPECT_NE(handle_of(make_memory(4096)), handle);
}

TEST_F(StandInIpc, OtherMemoryHasNoHandle) {
  cudaIpcMemHandle_t handle{};
  void* pooled = nullptr;
  void* managed = nullptr;
  int here = 0;
  ok(cudaMallocAsync(&pooled, 512, stream_));
  ok(cudaMallocManaged(&managed, 512, cudaMemAttachGlobal));
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, pooled), cudaErrorInvalidValue);
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, managed), cudaErrorInvalidValue);
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, make_pinned()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, &here), cudaErrorInvalidValue);
}

TEST_F(StandInIpc, IsNotOpenedByTheProcessThatMadeItAndOnlyIfMadeForThatByAnother) {
  unsigned char* memory = make_memory();
  cudaIpcMemHandle_t handle{};
  ok(cudaIpcGetMemHandle(&handle, memory));
  const auto open = [](const cudaIpcMemHandle_t& which, unsigned flags) {
    void* opened = nullptr;
    return cudaIpcOpenMemHandle(&opened, which, flags);
  };
  EXPECT_EQ(open(handle, cudaIpcMemLazyEnablePeerAccess),
            static_cast<cudaError_t>(CUDA_ERROR_INVALID_CONTEXT));
  EXPECT_EQ(open(handle, 0), cudaErrorInvalidValue);
  EXPECT_EQ(open({}, cudaIpcMemLazyEnablePeerAccess), cudaErrorInvalidValue);
  cudaIpcMemHandle_t of_another = handle;
  of_another.reserved[16] = static_cast<char>(handle.reserved[16] ^ 1);  // the process's number
  EXPECT_EQ(open(of_another, cudaIpcMemLazyEnablePeerAccess), cudaErrorNotSupported);
  ok(cudaFree(memory));
  EXPECT_EQ(open(handle, cudaIpcMemLazyEnablePeerAccess), cudaErrorInvalidValue);
  EXPECT_EQ(cudaIpcCloseMemHandle(memory), cudaErrorInvalidValue);
}

class StandInShared : public StandIn {
 protected:
  /// Runs `test` in another process. Returns its exit code.
  static int run_elsewhere(const std::string& test, const weir::testing::Variables& variables) {
    return weir::testing::run_this_program({"--gtest_filter=" + test}, variables);
  }
};

TEST_F(StandInShared, AnotherProcessReadsAndWritesIt) {
  weir_standin_set_shareable(1);
  unsigned char* const memory = make_memory(kBytes);
  const cudaEvent_t event = make_event(cudaEventInterprocess | cudaEventDisableTiming);
  ok(cudaMemsetAsync(memory, 7, kBytes, stream_));
  ok(cudaEventRecord(event, stream_));
  cudaIpcMemHandle_t handle{};
  ok(cudaIpcGetMemHandle(&handle, memory));
  cudaIpcEventHandle_t recorded{};
  ok(cudaIpcGetEventHandle(&recorded, event));
  EXPECT_EQ(cudaIpcGetEventHandle(&recorded, make_event()), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(run_elsewhere("StandInSharedGuest.*",
                          {{kMemory, to_text(handle)}, {kEvent, to_text(recorded)}}),
            0);
  EXPECT_TRUE(all_bytes(memory, 8, kBytes));
  ok(cudaFree(memory));
}

class StandInSharedGuest : public StandInShared {};

TEST_F(StandInSharedGuest, ReadsAndWritesWhatItOpens) {
  const char* const memory_text = std::getenv(kMemory);
  const char* const event_text = std::getenv(kEvent);
  if (memory_text == nullptr || event_text == nullptr) GTEST_SKIP() << "run by the one above";
  const auto handle = from_text<cudaIpcMemHandle_t>(memory_text);
  void* opened = nullptr;
  void* again = nullptr;
  ok(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess));
  ok(cudaIpcOpenMemHandle(&again, handle, cudaIpcMemLazyEnablePeerAccess));
  EXPECT_EQ(again, opened);
  cudaEvent_t event = nullptr;
  ok(cudaIpcOpenEventHandle(&event, from_text<cudaIpcEventHandle_t>(event_text)));
  ok(cudaStreamWaitEvent(stream_, event, 0));
  sync();
  EXPECT_TRUE(all_bytes(static_cast<unsigned char*>(opened), 7, kBytes));
  ok(cudaMemsetAsync(opened, 8, kBytes, stream_));
  sync();
  EXPECT_EQ(cudaFree(opened), cudaErrorInvalidValue);
  ok(cudaIpcCloseMemHandle(opened));
  ok(cudaIpcCloseMemHandle(opened));
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace weir::standin::testing
