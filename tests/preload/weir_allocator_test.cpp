// `weir run` and the frameworks' allocators, as users see them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <utility>

#include "weir_process.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// What a framework reads.
constexpr std::array<const char*, 5> kOfFrameworks{
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_PREALLOCATE", "TF_GPU_ALLOCATOR"};

/// A program that prints them all.
Words print_them(Words flags) {
  Words words;
  for (const char* name : kOfFrameworks) words.insert(words.end(), {"print", name});
  return run_words(std::move(flags), words);
}

TEST(WeirAllocator, TheProgramFindsNoVariableOfAFrameworkThatIsNotTheUsers) {
  std::string unset;
  for (const char* name : kOfFrameworks) unset += std::string(name) + " is not set\n";
  EXPECT_EQ(run_weir(print_them({})).out, unset);
  EXPECT_EQ(run_weir(print_them({"--allocator", "framework"}), {{"WEIR_ALLOCATOR", "async"}}).out,
            unset);
  const Finished own = run_weir(print_them({}), {{"PYTORCH_ALLOC_CONF", "max_split_size_mb:64"}});
  EXPECT_THAT(own.out, HasSubstr("\nPYTORCH_ALLOC_CONF=max_split_size_mb:64\n"));
  EXPECT_THAT(own.out, HasSubstr("PYTORCH_CUDA_ALLOC_CONF is not set\n"));
}

TEST(WeirAllocator, StreamOrderIsByTheFlagOrByTheVariable) {
  const std::string all =
      "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync\nPYTORCH_ALLOC_CONF=backend:"
      "cudaMallocAsync\n"
      "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async\nXLA_PYTHON_CLIENT_PREALLOCATE=false\n"
      "TF_GPU_ALLOCATOR=cuda_malloc_async\n";
  EXPECT_EQ(run_weir(print_them({"--allocator", "async"})).out, all);
  EXPECT_EQ(run_weir(print_them({}), {{"WEIR_ALLOCATOR", "async"}}).out, all);
}

TEST(WeirAllocator, PyTorchFollowsTheAllocatorThatIsSetUnlessTheFlagIsForItAlone) {
  const auto torch = [](Words flags, const Variables& variables = {}) {
    return run_weir(run_words(std::move(flags), {"print", "WEIR_TORCH"}), variables).out;
  };
  EXPECT_EQ(torch({}), "WEIR_TORCH is not set\n") << "which is the plug";
  EXPECT_EQ(torch({"--allocator", "framework"}), "WEIR_TORCH=off\n");
  EXPECT_EQ(torch({}, {{"WEIR_ALLOCATOR", "async"}}), "WEIR_TORCH=async\n");
  EXPECT_EQ(torch({"--torch", "plug", "--allocator", "async"}), "WEIR_TORCH=plug\n");
  EXPECT_EQ(torch({"--torch", "off"}, {{"WEIR_TORCH", "plug"}}), "WEIR_TORCH=off\n");
  EXPECT_EQ(torch({"--allocator", "async"}, {{"WEIR_TORCH", "plug"}}), "WEIR_TORCH=plug\n");
  EXPECT_THAT(
      run_weir(print_them({"--torch", "async"})).out,
      HasSubstr("PYTORCH_ALLOC_CONF=backend:cudaMallocAsync\nXLA_PYTHON_CLIENT_ALLOCATOR is "
                "not set\n"));
}

TEST(WeirAllocator, TheLineNamesThePlugsThatLieBesideTheLibrary) {
  const TemporaryDirectory folder;
  std::filesystem::copy_file(FAKE_LIBRARY, folder.file("libweir.so"));
  write_file(folder.file("libweir_torch_2.15.so"), "");
  write_file(folder.file("libweir_torch_2.9.so"), "");
  const Words flags{"--library", folder.file("libweir.so")};
  EXPECT_THAT(
      run_weir(run_words(flags, {})).err,
      StartsWith("weir: allocator framework: PyTorch 2.9 and 2.15 take each tensor from Weir"));
  EXPECT_THAT(run_weir({"info"}, {{"WEIR_LIBRARY", folder.file("libweir.so")}}).out,
              HasSubstr("\nallocator framework: PyTorch 2.9 and 2.15 take each tensor from Weir"));
}

TEST(WeirAllocator, OneLineAtTheStartAlwaysSaysWhichIsInForce) {
  for (const char* level : {"error", "warn", "debug"}) {
    EXPECT_THAT(run_weir(run_words({"--log", level}, {})).err,
                StartsWith("weir: allocator framework: frameworks keep their own caches"));
    EXPECT_THAT(run_weir(run_words({"--log", level, "--allocator", "async"}, {})).err,
                StartsWith("weir: allocator async: PyTorch, JAX and TensorFlow ask Weir"));
  }
  EXPECT_THAT(
      run_weir(run_words({}, {}), {{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}}).err,
      HasSubstr("; by PYTORCH_CUDA_ALLOC_CONF PyTorch requests each tensor in stream order"));
}

TEST(WeirAllocator, TheLineComesBeforeAllThatTheProgramSays) {
  const Finished weir = run_weir(run_words({}, {"-c", "echo first >&2"}, "/bin/sh"));
  EXPECT_THAT(after_allocator(weir.err), StartsWith("first\n"));
}

TEST(WeirAllocator, WithoutAReaderOfTheLineTheProgramRuns) {
  // After the loop the reader of the pipe has certainly ended.
  const Finished shell = run_weir(run_words(
      {},
      {"-c", "{ { (while printf x; do :; done); " WEIR_TRAIN_PROGRAM " run --library " FAKE_LIBRARY
             " -- " FAKE_PROGRAM " say ran exit 5 2>&1 >&3; echo $? >&3; } | "
             "true; } 3>&1"},
      "/bin/sh"));
  EXPECT_EQ(shell.out, "ran\n5\n") << shell.err;
}

}  // namespace
}  // namespace weir::testing
