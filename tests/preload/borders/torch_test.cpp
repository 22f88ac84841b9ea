#include <cuda.h>
#include <gmock/gmock.h>
#include <sys/types.h>

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "allocator/base/log.hpp"
#include "tests/preload/borders/fake_api.hpp"

// As PyTorch knows them: by name, with these arguments.
extern "C" {
void* weir_torch_alloc(ssize_t size, int device, CUstream stream);
void* weir_torch_alloc_or_null(ssize_t size, int device, CUstream stream);
void weir_torch_free(void* memory, ssize_t size, int device, CUstream stream);
void weir_torch_init(int device_count);
void weir_torch_reset();
void weir_torch_memory_fraction(double fraction, int device);
void* weir_torch_base_alloc(void* memory, size_t* size);
void weir_torch_record_stream(void* memory, CUstream stream);
}

namespace weir::preload {
namespace {

using fake::take_calls;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

CUstream stream_7() { return reinterpret_cast<CUstream>(7); }

class Torch : public ::testing::Test {
 protected:
  Torch() { start(); }
  ~Torch() override { start(); }

  static std::string what_is_thrown(ssize_t size) {
    try {
      (void)weir_torch_alloc(size, 1, stream_7());
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "nothing";
  }

 private:
  static void start() {
    fake::answer({});
    (void)take_calls();
  }
};

TEST_F(Torch, AllocatesAndFreesOnTheStreamAndDeviceThatItNames) {
  void* const memory = weir_torch_alloc(4096, 1, stream_7());
  EXPECT_EQ(memory, fake::memory());
  weir_torch_record_stream(memory, nullptr);
  weir_torch_free(memory, 4096, 1, stream_7());
  EXPECT_THAT(take_calls(), ElementsAre("allocate 4096 block on 1 stream 7",
                                        "use block on -1 stream 0", "free block on 1 stream 7"));
}

TEST_F(Torch, ATensorWithoutElementsHasNoMemory) {
  EXPECT_EQ(weir_torch_alloc(0, 0, nullptr), nullptr);
  EXPECT_EQ(weir_torch_alloc_or_null(0, 0, nullptr), nullptr);
  weir_torch_free(nullptr, 0, 0, nullptr);
  weir_torch_record_stream(nullptr, nullptr);
  EXPECT_THAT(take_calls(), IsEmpty());
}

TEST_F(Torch, RunningOutIsAnExceptionThatPyTorchKnows) {
  fake::answer({.allocates = false});
  const std::string thrown = what_is_thrown(4096);
  EXPECT_THAT(thrown, StartsWith("CUDA out of memory. "));
  EXPECT_THAT(thrown, HasSubstr("4096 bytes on device 1: budget 640, allocated 100"));
  EXPECT_EQ(std::uncaught_exceptions(), 0);

  fake::answer({.knows = false, .allocates = false});
  EXPECT_THAT(what_is_thrown(4096), StartsWith("CUDA out of memory. "));
}

TEST_F(Torch, MoreThanCanBeSaidIsRunningOut) {
  EXPECT_THAT(what_is_thrown(-1), StartsWith("CUDA out of memory. "));
  EXPECT_THAT(take_calls(), ElementsAre("memory 1"));
}

TEST_F(Torch, RunningOutInAMemPoolIsNull) {
  fake::answer({.allocates = false});
  EXPECT_EQ(weir_torch_alloc_or_null(4096, 0, nullptr), nullptr);
}

TEST_F(Torch, EmptyingTheCacheTrimsEveryDevice) {
  weir_torch_init(3);
  weir_torch_reset();
  EXPECT_THAT(take_calls(), ElementsAre("trim -1"));
}

TEST_F(Torch, ABlockIsItsOwnBase) {
  std::size_t size = 99;
  EXPECT_EQ(weir_torch_base_alloc(fake::memory(), &size), fake::memory());
  EXPECT_EQ(size, 0U);
  EXPECT_EQ(weir_torch_base_alloc(fake::memory(), nullptr), fake::memory());
}

std::string logged;

TEST_F(Torch, AMemoryFractionIsPassedOverAloud) {
  set_log_sink([](LogLevel, std::string_view text) { logged = text; });
  weir_torch_memory_fraction(0.5, 1);
  set_log_sink(nullptr);
  EXPECT_THAT(logged, HasSubstr("fraction of 0.5 for device 1"));
  EXPECT_THAT(logged, HasSubstr("WEIR_BUDGET"));
}

}  // namespace
}  // namespace weir::preload
