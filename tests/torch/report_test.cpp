#include "tools/torch/books/report.hpp"

#include <gtest/gtest.h>

namespace weir::testing {
namespace {

using torch_plug::Shortage;
using torch_plug::shortage_text;
using torch_plug::size_text;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

TEST(TorchReport, PrintsSizesAsPyTorchDoes) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1024), "1024 bytes");
  EXPECT_EQ(size_text(1536), "1.50 KiB");
  EXPECT_EQ(size_text(kMiB), "1024.00 KiB");
  EXPECT_EQ(size_text(30 * kMiB), "30.00 MiB");
  EXPECT_EQ(size_text(5120 * kMiB), "5.00 GiB");
  EXPECT_EQ(size_text(std::uint64_t{1} << 45U), "32768.00 GiB");
}

TEST(TorchReport, SaysWhatPyTorchSaysAndWhatWeirKnows) {
  const Shortage shortage{.device = 1,
                          .requested = 2048 * kMiB,
                          .total = 8192 * kMiB,
                          .free = 512 * kMiB,
                          .allocated = 6144 * kMiB,
                          .in_private_pools = 0,
                          .reserved = 7168 * kMiB,
                          .budget = 7680 * kMiB,
                          .awaiting = 256 * kMiB,
                          .cached = 768 * kMiB,
                          .passed = 3 * kMiB};
  EXPECT_EQ(
      shortage_text(shortage),
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 8.00 GiB "
      "of which 512.00 MiB is free. Of the allocated memory 6.00 GiB is allocated by PyTorch, "
      "and 1024.00 MiB is reserved by PyTorch but unallocated. Weir: a budget of 7.50 GiB, "
      "256.00 MiB freed but still in use by the device, 768.00 MiB cached, 3.00 MiB served by "
      "the driver itself.");
}

TEST(TorchReport, NamesPrivatePoolsOnlyIfThereAreAny) {
  Shortage shortage;
  EXPECT_EQ(shortage_text(shortage).find("private pools"), std::string::npos);
  shortage.in_private_pools = 20 * kMiB;
  EXPECT_NE(shortage_text(shortage).find(
                "with 20.00 MiB allocated in private pools (e.g., CUDA Graphs), "),
            std::string::npos);
}

TEST(TorchReport, MoreTensorsThanReservedMemoryIsNothingUnallocated) {
  EXPECT_NE(shortage_text({.allocated = 2, .reserved = 1}).find("and 0 bytes is reserved"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::testing
