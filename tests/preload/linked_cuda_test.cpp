// How a program is linked with CUDA, and the hint that follows.

#include "tools/weir/run/linked_cuda.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/environment.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::cli {
namespace {

using ::testing::HasSubstr;
using weir::testing::environment_of;
using weir::testing::TemporaryDirectory;
using weir::testing::write_file;

TEST(LinkedCuda, IsReadFromTheNamesInTheFile) {
  const LinkedCuda shared = linked_cuda_in(
      "\x7f"
      "ELF libcudart.so.13 libc.so.6");
  EXPECT_TRUE(shared.cuda);
  EXPECT_FALSE(shared.static_runtime);
  EXPECT_FALSE(shared.framework);
  const LinkedCuda with_static = linked_cuda_in("cudaErrorCudartUnloading libcuda.so.1");
  EXPECT_TRUE(with_static.cuda && with_static.static_runtime);
  EXPECT_FALSE(linked_cuda_in("cudaErrorCudartUnloading weir_standin_reset").static_runtime);
  const LinkedCuda torch = linked_cuda_in("libtorch_cuda.so libcudart.so.13");
  EXPECT_TRUE(torch.cuda && torch.framework);
  EXPECT_FALSE(linked_cuda_in("libc.so.6").cuda);
  EXPECT_FALSE(linked_cuda_in("").cuda);
}

TEST(LinkedCuda, NothingIsKnownOfAFileThatCannotBeRead) {
  const TemporaryDirectory folder;
  EXPECT_FALSE(linked_cuda(folder.file("absent")).cuda);
  EXPECT_FALSE(linked_cuda(folder.file("")).cuda) << "a folder";
  write_file(folder.file("empty"), "");
  EXPECT_FALSE(linked_cuda(folder.file("empty")).cuda);
  write_file(folder.file("program"),
             "\x7f"
             "ELF … libcudart.so.13");
  EXPECT_TRUE(linked_cuda(folder.file("program")).cuda);
  write_file(folder.file("script"), "#!/bin/sh\n# needs libcudart.so.13\n");
  EXPECT_FALSE(linked_cuda(folder.file("script")).cuda);
}

TEST(LinkedCuda, TheFirstDriverInThePathTells) {
  const TemporaryDirectory folder;
  for (const char* name : {"none", "real", "standin"}) {
    std::filesystem::create_directory(folder.file(name));
  }
  write_file(folder.file("real/libcuda.so.1"), "cuInit");
  write_file(folder.file("standin/libcuda.so.1"), "cuInit weir_standin_reset");
  const auto finds = [&](const std::string& path) {
    return finds_standin(environment_of({{"LD_LIBRARY_PATH", path}}));
  };
  const std::string none = folder.file("none");
  const std::string real = folder.file("real");
  const std::string standin = folder.file("standin");
  EXPECT_TRUE(finds(standin));
  EXPECT_TRUE(finds(none + "::" + standin + ":" + real));
  EXPECT_FALSE(finds(real + ":" + standin));
  EXPECT_FALSE(finds(none));
  EXPECT_FALSE(finds_standin(environment_of({})));
}

TEST(LinkedCuda, AStaticRuntimeOnTheStandInIsHintedAt) {
  EXPECT_THAT(no_cuda_hint({.cuda = true, .static_runtime = true}, true),
              HasSubstr("nvcc -cudart shared"));
  EXPECT_EQ(no_cuda_hint({.cuda = true, .static_runtime = true}, false), "");
  EXPECT_EQ(no_cuda_hint({.cuda = true}, true), "");
}

}  // namespace
}  // namespace weir::cli
