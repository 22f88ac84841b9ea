// `weir info` as users see it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "allocator/base/bytes.hpp"
#ifdef STANDIN_FOLDER
#include "tools/preload/hooks/hook_list.hpp"
#endif
#include "support/table_checks.hpp"
#include "weir_process.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;
namespace fs = std::filesystem;

TEST(WeirInfo, WithoutADeviceItSaysSoAndGoesOn) {
  const Finished weir = run_weir({"info"});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_EQ(weir.err, "");
  EXPECT_THAT(weir.out, HasSubstr("\ndriver: no device can be used"));
  EXPECT_THAT(weir.out, HasSubstr("\nlibrary: " FAKE_LIBRARY "\n"));
  expect_legend_of(weir.out, "setting");
}

TEST(WeirInfo, FitsTheTerminalAndWideCutsNothing) {
  const std::string place = "/tmp/" + std::string(200, 'p');
  const Finished weir = run_weir({"info"}, {{"WEIR_SUMMARY", place}});
  std::string tables;  // a path of the library is not broken
  for (const std::string& line : lines_of_text(weir.out)) {
    if (!line.starts_with("library: ")) tables += line + "\n";
  }
  EXPECT_LE(widest_line(tables), 100U) << tables;
  EXPECT_THAT(weir.out, HasSubstr("..."));
  EXPECT_THAT(run_weir({"info", "--wide"}, {{"WEIR_SUMMARY", place}}).out, HasSubstr(place));
}

TEST(WeirInfo, NamesEachSettingWithItsSource) {
  const Json json =
      Json::parse(run_weir({"info", "--json", "-"},
                           {{"WEIR_BUDGET", "6GiB"}, {"MXNET_GPU_MEM_POOL_TYPE", "Naive"}})
                      .out);
  const auto expect_setting = [&json](const char* name, const char* value, const char* source) {
    EXPECT_EQ(json.at("settings").at(name), (Json{{"value", value}, {"source", source}}));
  };
  expect_setting("budget", "6GiB", "WEIR_BUDGET");
  expect_setting("pool", "naive", "MXNET_GPU_MEM_POOL_TYPE");
  expect_setting("policy", "throttled", "default");
  EXPECT_EQ(json.at("library"), FAKE_LIBRARY);
  expect_setting("allocator", "framework", "default");
  const Finished async = run_weir({"info"}, {{"WEIR_ALLOCATOR", "async"}});
  EXPECT_THAT(async.out, ::testing::ContainsRegex("\nallocator +async +WEIR_ALLOCATOR\n"));
  EXPECT_THAT(async.out, HasSubstr("\nallocator: PyTorch, JAX and TensorFlow ask Weir "));
  EXPECT_THAT(run_weir({"info"}, {{"WEIR_BUDGET", "6GiB"}}).out,
              ::testing::ContainsRegex("\nbudget +6GiB +WEIR_BUDGET\n"));
}

TEST(WeirInfo, JsonIsAFile) {
  const TemporaryDirectory directory;
  const Finished weir = run_weir({"info", "--json", directory.file("info.json")});
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  EXPECT_EQ(weir.out, "");
  EXPECT_EQ(Json::parse(read_file(directory.file("info.json"))).at("library"), FAKE_LIBRARY);
}

TEST(WeirInfo, AVariableWithAMistakeInItsNameIsNamedWithTheNearest) {
  const std::string warning =
      "weir: WEIR_BUGET is set but is not a variable of Weir: the nearest is WEIR_BUDGET\n";
  const Variables mistaken{{"WEIR_BUGET", "6GiB"}};
  EXPECT_EQ(run_weir({"info"}, mistaken).err, warning);
  EXPECT_THAT(run_weir(run_words({}, {}), mistaken).err, StartsWith(warning));
  EXPECT_EQ(run_weir({"info"}, {{"WEIR_BUGET", "6GiB"}, {"WEIR_LOG", "error"}}).err, "");
}

TEST(WeirInfo, LibraryIsAPathAndNothingElse) {
  EXPECT_EQ(run_weir({"info", "--library"}).out, FAKE_LIBRARY "\n");
}

/// The output of `weir info --library` with the program at `program` and libweir.so at `library`,
/// both relative to one folder.
Finished ask_copy(const std::string& program, const std::string& library) {
  const TemporaryDirectory tree;
  for (const std::string& path : {program, library}) {
    fs::create_directories(fs::path(tree.file(path)).parent_path());
  }
  fs::copy_file(WEIR_TRAIN_PROGRAM, tree.file(program));
  fs::copy_file(FAKE_LIBRARY, tree.file(library));
  // This `weir` starts the other, without WEIR_LIBRARY.
  Finished ended = run_weir({"run", "--log", "error", "--library", FAKE_LIBRARY, "--",
                             tree.file(program), "info", "--library"},
                            {{"WEIR_LIBRARY", ""}});
  const std::string found = tree.file(library) + "\n";
  if (ended.out == found) ended.out = "found";
  return ended;
}

TEST(WeirInfo, FindsTheLibraryWhereItIsBuiltAndWhereItIsInstalled) {
  EXPECT_EQ(ask_copy("tools/weir/weir", "tools/preload/libweir.so").out, "found");
  EXPECT_EQ(
      ask_copy("bin/weir",
               fs::path("bin/" LIBDIR_FROM_BINDIR "/weir/libweir.so").lexically_normal().string())
          .out,
      "found");
  const Finished absent = ask_copy("bin/weir", "elsewhere/libweir.so");
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_EQ(absent.out, "");
  const std::string err = after_allocator(absent.err);  // of the weir that started it
  EXPECT_THAT(err, StartsWith("weir: th"));
  EXPECT_EQ(std::ranges::count(err, '\n'), 1) << err;
}

#ifdef STANDIN_FOLDER

TEST(WeirInfo, HooksAreATableOfAllThatTheLibraryStandsInFrontOf) {
  const Finished weir = run_weir({"info", "--hooks"});
  EXPECT_EQ(weir.exit_code, 0);
  EXPECT_THAT(weir.out, StartsWith("function "));
  EXPECT_THAT(weir.out, ::testing::ContainsRegex("\ncuMemFree_v2 +own +3.2 +to the pool"));
  EXPECT_THAT(weir.out, ::testing::ContainsRegex("\ncuLaunchKernel, _ptsz +pace +4.0 +paced\n"));
  EXPECT_LE(widest_line(weir.out), 100U);
  expect_legend_of(weir.out, "function");
  // One line for the heading, and one for each function; with a legend of one or two.
  const std::string wide = run_weir({"info", "--hooks", "--wide"}).out;
  const auto rows = std::ranges::count_if(
      lines_of_text(wide), [](const std::string& line) { return !line.starts_with(' '); });
  EXPECT_EQ(static_cast<std::size_t>(rows),
            preload::hooks().size() + preload::nvml_hooks().size() + 1);
}

Variables standin(const std::string& budget) {
  return {{"LD_LIBRARY_PATH", STANDIN_FOLDER},
          {"CUDA_VISIBLE_DEVICES", ""},
          {"WEIR_STANDIN_DEVICES", "2"},
          {"WEIR_STANDIN_MEMORY", "4G"},
          {"WEIR_STANDIN_DRIVER_VERSION", "13000"},
          {"WEIR_BUDGET", budget}};
}

TEST(WeirInfo, EachDeviceHasItsMemoryAndItsBudget) {
  const Finished weir = run_weir({"info", "--json", "-"}, standin("50%"));
  EXPECT_EQ(weir.exit_code, 0) << weir.err;
  const Json json = Json::parse(weir.out);
  EXPECT_EQ(json.at("cuda_version"), "13.0");
  ASSERT_EQ(json.at("devices").size(), 2U);
  for (const Json& device : json.at("devices")) {
    EXPECT_NE(device.at("name"), "?");
    EXPECT_EQ(device.at("total_bytes"), gib(4).count);
    EXPECT_EQ(device.at("budget_bytes"), gib(2).count);
    EXPECT_GT(device.at("free_bytes"), 0);
    EXPECT_LE(device.at("free_bytes"), gib(4).count);
  }
}

TEST(WeirInfo, ABudgetThatADeviceCannotGiveIsSaid) {
  const Finished weir = run_weir({"info"}, standin("5GiB"));
  EXPECT_EQ(weir.exit_code, 0);
  EXPECT_THAT(weir.out, HasSubstr("driver: for CUDA 13.0\n"));
  EXPECT_THAT(weir.out, HasSubstr("\ndevice 1: WEIR_BUDGET='5 GiB' is not allowed"));
}

#endif

}  // namespace
}  // namespace weir::testing
