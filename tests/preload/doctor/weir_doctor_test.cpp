// `weir doctor` as users see it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "allocator/base/version.hpp"
#include "preload/weir_process.hpp"
#include "support/sanitized.hpp"
#include "tools/preload/borders/version_mark.hpp"

namespace weir::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

Json doctor(Variables variables = {}, Words flags = {}) {
  flags.insert(flags.begin(), {"doctor", "--json", "-"});
  const Finished weir = run_weir(flags, std::move(variables));
  EXPECT_EQ(weir.err, "");
  EXPECT_LE(weir.exit_code, 1);
  Json json = Json::parse(weir.out);
  EXPECT_EQ(weir.exit_code == 0, json.at("ok").get<bool>());
  return json;
}

/// The first finding of a check; an empty object if there is none.
Json finding(const Json& json, const std::string& check) {
  for (const Json& one : json.at("findings")) {
    if (one.at("check") == check) return one;
  }
  return Json::object();
}

TEST(WeirDoctor, TextEndsInASentenceAndFitsATerminal) {
  const Finished weir = run_weir({"doctor"}, {{"WEIR_LOG", "info"}});
  EXPECT_EQ(weir.err, "");
  EXPECT_THAT(weir.out, StartsWith("weir " + std::string(kVersion) + "\n\nsystem\n  ok     "));
  for (const char* group :
       {"\ndriver\n", "\nlibrary\n", "\npython\n", "\nsettings\n", "\nlimits\n"}) {
    EXPECT_THAT(weir.out, HasSubstr(group));
  }
  EXPECT_THAT(weir.out, ::testing::ContainsRegex("\nWorks here: [^\n]*weir-train"));
  EXPECT_THAT(weir.out, ::testing::Not(HasSubstr("\x1b")));
  std::istringstream lines(weir.out);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::size_t kText = 9;  // behind `  fails  `
    const bool is_one_word = line.size() > kText && line.find(' ', kText) == std::string::npos;
    EXPECT_TRUE(line.size() <= 80 || is_one_word) << line;
  }
}

TEST(WeirDoctor, BadInputIsRefused) {
  EXPECT_EQ(run_weir({"doctor", "--wings"}).exit_code, 2);
  const Finished unwritable = run_weir({"doctor", "--json", "/nowhere/doctor.json"});
  EXPECT_EQ(unwritable.exit_code, 2);
  EXPECT_THAT(unwritable.err, StartsWith("weir: --json='/nowhere/doctor.json' is not allowed"));
}

TEST(WeirDoctor, BrokenSettingsAreFindingsAndNoEnd) {
  const Json json = doctor({{"WEIR_BUDGET", "lots"},
                            {"WEIR_BUGET", "6GiB"},
                            {"WEIR_LOG", "loud"},
                            {"WEIR_PUBLISH", "somewhere"}});
  std::vector<std::string> texts;
  for (const Json& one : json.at("findings")) texts.push_back(one.at("text"));
  EXPECT_THAT(texts, Contains(StartsWith("WEIR_BUDGET='lots' is not allowed")));
  EXPECT_THAT(texts, Contains(HasSubstr("the nearest is WEIR_BUDGET")));
  EXPECT_THAT(texts, Contains(StartsWith("WEIR_LOG='loud' is not allowed")));
  EXPECT_THAT(texts, Contains(StartsWith("WEIR_PUBLISH='somewhere' is not allowed")));
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("variables").at("WEIR_BUDGET"), "lots");
  EXPECT_THAT(json.at("does_not"), Contains("train-cpu"));
}

TEST(WeirDoctor, PathsNameNeitherMachineNorUserNorHome) {
  const TemporaryDirectory home;
  std::array<char, 256> host{};
  ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
  const passwd* const user = getpwuid(getuid());
  ASSERT_NE(user, nullptr);
  const std::string shared = std::string("/srv/") + user->pw_name + "/" + host.data();
  const Finished weir = run_weir({"doctor", "--json", "-"}, {{"HOME", home.file("")},
                                                             {"WEIR_ALLOC_LOG", home.file("log")},
                                                             {"WEIR_SUMMARY", shared + "/x.json"}});
  const Json variables = Json::parse(weir.out).at("variables");
  EXPECT_EQ(variables.at("WEIR_ALLOC_LOG"), "~/log");
  EXPECT_EQ(variables.at("WEIR_SUMMARY"), "/srv/USER/HOST/x.json");
  EXPECT_EQ(weir.out.find(home.file("")), std::string::npos);
  EXPECT_EQ(weir.out.find(shared), std::string::npos);
}

/// A copy of the library whose file says another version.
TEST(WeirDoctor, ALibraryOfAnotherVersionFails) {
  const TemporaryDirectory folder;
  write_file(folder.file("libweir.so"),
             read_file(FAKE_LIBRARY) + std::string(preload::kVersionMark) + "9.9.9" + '\0');
  const Json json = doctor({{"WEIR_LIBRARY", folder.file("libweir.so")}});
  EXPECT_EQ(finding(json, "library").at("state"), "fails");
  EXPECT_THAT(finding(json, "library").at("text"),
              HasSubstr("is version 9.9.9, and this command " + std::string(kVersion)));
}

TEST(WeirDoctor, WhatPythonPrintsAtItsEndIsNotTheAnswer) {
  const TemporaryDirectory folder;
  write_file(folder.file("sitecustomize.py"),
             "import atexit, sys\nsys.path.append(None)\natexit.register(lambda: print('bye'))\n");
  const Json json = doctor({{"PYTHONPATH", folder.file("")}});
  EXPECT_EQ(finding(json, "python").at("state"), "ok");
}

/// `weir doctor --json -` under a limit that a shell sets before.
Finished doctor_under(const std::string& limit) {
  return ChildProcess({"-c", limit + " && exec " WEIR_TRAIN_PROGRAM " doctor --json -"},
                      {.program = "/bin/sh", .environment = with_library({})})
      .wait();
}

TEST(WeirDoctor, WithoutFilesItSaysSo) {
#if WEIR_TEST_SANITIZED
  GTEST_SKIP() << "the sanitizer's own checks need files";
#endif
  for (const char* limit : {"ulimit -n 4", "ulimit -n 8"}) {
    const Finished weir = doctor_under(limit);
    EXPECT_EQ(weir.exit_code, 1);
    EXPECT_EQ(weir.out, "");
    EXPECT_THAT(weir.err, StartsWith("weir: weir doctor takes 8 more open files, and "));
    EXPECT_THAT(weir.err, HasSubstr("(ulimit -n): Too many open files"));
  }
}

TEST(WeirDoctor, FromSixteenFilesOnItFindsWhatItFindsWithMany) {
  const Json many = Json::parse(doctor_under("true").out);
  const Json few = Json::parse(doctor_under("ulimit -n 16").out);
  ASSERT_EQ(many.at("findings").size(), few.at("findings").size());
  for (std::size_t i = 0; i < many.at("findings").size(); ++i) {
    const Json& one = many.at("findings").at(i);
    if (one.at("check") == "open-files") continue;
    EXPECT_EQ(one, few.at("findings").at(i));
  }
}

TEST(WeirDoctor, WithLittleMemoryThereIsAReport) {
  if (WEIR_TEST_SANITIZED != 0) GTEST_SKIP() << "a sanitizer takes more addresses";
  const Finished weir = doctor_under("ulimit -v 250000");
  EXPECT_EQ(weir.err, "");
  EXPECT_EQ(weir.exit_code, 1);  // there is no driver
  EXPECT_EQ(finding(Json::parse(weir.out), "driver").at("state"), "fails");
}

TEST(WeirDoctor, WhatFailsIsInTheListOfWhatDoesNotWork) {
  const Json json = doctor({}, {"--python", "/bin/true"});
  EXPECT_EQ(finding(json, "python").at("state"), "fails");
  EXPECT_THAT(json.at("does_not"), Contains("plug"));
}

TEST(WeirDoctor, NothingIsLeftBehind) {
  const TemporaryDirectory temporary;
  (void)doctor({{"TMPDIR", temporary.file("")}, {"WEIR_PUBLISH", temporary.file("live")}});
  EXPECT_EQ(temporary.entries(), 0U);
}

#ifdef SWAP_IN_LIBRARY
TEST(WeirDoctor, TheBuiltLibraryHasOurVersion) {
  const Json json = doctor({{"WEIR_LIBRARY", SWAP_IN_LIBRARY}});
  EXPECT_EQ(finding(json, "library").at("state"), "ok");
  EXPECT_THAT(finding(json, "library").at("text"),
              HasSubstr("libweir.so, version " + std::string(kVersion)));
  EXPECT_THAT(finding(json, "python-preload").at("text"), HasSubstr("ran with the library in it"));
}
#endif

#ifdef STANDIN_FOLDER
Variables standin(Variables more = {}) {
  more.insert({{"LD_LIBRARY_PATH", STANDIN_FOLDER},
               {"CUDA_VISIBLE_DEVICES", "0"},
               {"WEIR_STANDIN_DEVICES", "2"},
               {"WEIR_STANDIN_MEMORY", "4G"},
               {"WEIR_STANDIN_DRIVER_VERSION", "13000"}});
  return more;
}

TEST(WeirDoctor, TheStandInIsCalledThat) {
  const Json json = doctor(standin());
  EXPECT_EQ(finding(json, "driver").at("state"), "warn");
  EXPECT_THAT(finding(json, "driver").at("text"),
              StartsWith("this is Weir's stand-in driver for CUDA 13.0, not NVIDIA's"));
  EXPECT_THAT(finding(json, "device").at("text"), StartsWith("GPU 0: "));
  EXPECT_THAT(finding(json, "device").at("text"), HasSubstr(", 4 GiB, "));
  EXPECT_EQ(finding(json, "cublas").at("state"), "ok");
  EXPECT_THAT(json.at("works"), Contains("run"));
  // Its CUDA runtime is linked into it, and asks drivers for what the stand-in does not have.
  EXPECT_THAT(json.at("does_not"), Contains("train-gpu"));
}

#endif

}  // namespace
}  // namespace weir::testing
