// `weir run` and the frameworks' allocators, as users see them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <utility>

#include "support/joined_lines.hpp"
#include "support/table_checks.hpp"
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

constexpr const char* kWithoutCuda = "/bin/true";

TEST(WeirAllocator, StreamOrderIsByTheFlagOrByTheVariable) {
  const std::string all =
      "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync\nPYTORCH_ALLOC_CONF=backend:"
      "cudaMallocAsync\n"
      "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async\nXLA_PYTHON_CLIENT_PREALLOCATE=false\n"
      "TF_GPU_ALLOCATOR=cuda_malloc_async\n";
  EXPECT_EQ(run_weir(print_them({"--allocator", "async"})).out, all);
  EXPECT_EQ(run_weir(print_them({}), {{"WEIR_ALLOCATOR", "async"}}).out, all);
}

TEST(WeirAllocator, TheLineNamesThePlugsThatLieBesideTheLibrary) {
  const TemporaryDirectory folder;
  std::filesystem::copy_file(FAKE_LIBRARY, folder.file("libweir.so"));
  write_file(folder.file("libweir_torch_2.15.so"), "");
  write_file(folder.file("libweir_torch_2.9.so"), "");
  const Words flags{"--library", folder.file("libweir.so")};
  EXPECT_THAT(run_weir(run_words(flags, {}, kWithoutCuda)).err,
              StartsWith("weir: allocator: PyTorch 2.9 and 2.15 take each tensor from Weir"));
  EXPECT_THAT(run_weir({"info"}, {{"WEIR_LIBRARY", folder.file("libweir.so")}}).out,
              HasSubstr("\nallocator: PyTorch 2.9 and 2.15 take each tensor from Weir"));
}

TEST(WeirAllocator, OneLineAtTheStartAlwaysSaysWhichIsInForce) {
  for (const char* level : {"error", "warn", "debug"}) {
    EXPECT_THAT(run_weir(run_words({"--log", level}, {}, kWithoutCuda)).err,
                StartsWith("weir: allocator: frameworks keep their own caches"));
    EXPECT_THAT(run_weir(run_words({"--log", level, "--allocator", "async"}, {})).err,
                StartsWith("weir: allocator: PyTorch, JAX and TensorFlow ask Weir"));
  }
  EXPECT_THAT(
      joined_lines(run_weir(run_words({}, {}, kWithoutCuda),
                            {{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}})
                       .err,
                   6),
      HasSubstr("; by PYTORCH_CUDA_ALLOC_CONF PyTorch requests each tensor in stream order"));
}

TEST(WeirAllocator, TheLineIsWrappedAtTheTerminalsWidth) {
  const std::string whole = run_weir(run_words({"--allocator", "async"}, {})).err;
  for (const auto& [columns, most] : {std::pair{"60", 60U}, std::pair{"500", 100U}}) {
    const std::string err =
        run_weir(run_words({"--allocator", "async"}, {}), {{"COLUMNS", columns}}).err;
    const std::string line = err.substr(0, err.size() - after_allocator(err).size());
    EXPECT_LE(widest_line(line), most) << line;
    EXPECT_EQ(joined_lines(err, 6), joined_lines(whole, 6));
  }
}

TEST(WeirAllocator, AProgramOfCudaWithoutAFrameworkIsToldNothingOfThem) {
  const TemporaryDirectory folder;
  const std::string program = folder.file("program");
  const auto err = [&](const char* linked, const Words& flags) {
    write_file(program, read_file(kWithoutCuda) + linked);  // what follows an ELF file is unused
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return run_weir(run_words(flags, {}, program)).err;
  };
  EXPECT_THAT(err("libcudart.so.13", {}), StartsWith("weir: there is no summary"));
  EXPECT_THAT(err("libcudart.so.13", {"--torch", "off"}), StartsWith(kAllocatorLine));
  EXPECT_THAT(err("libcudart.so.13 libtorch.so", {}), StartsWith(kAllocatorLine));
  EXPECT_THAT(err("nothing", {}), StartsWith(kAllocatorLine));
  write_file(program, "#!/bin/sh\nexit 0\n# libcudart.so.13\n");
  EXPECT_THAT(run_weir(run_words({}, {}, program)).err, StartsWith(kAllocatorLine))
      << "a script's text says nothing of what it starts";
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
