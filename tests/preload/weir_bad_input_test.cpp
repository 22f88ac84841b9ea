// Bad input of `weir`: one clear line and exit 2 before the program starts, and nothing is lost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "capability_bytes.hpp"
#include "elf_bytes.hpp"
#include "tests/support/sanitized.hpp"
#include "weir_process.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;

/// `weir WORDS` fails with one line that contains `named`.
void expect_refused(const Words& words, const std::string& named, const Variables& variables = {}) {
  std::string line = "weir";
  for (const std::string& word : words) line.append(" '").append(word).append("'");
  SCOPED_TRACE(line);
  const Finished weir = run_weir(words, variables);
  EXPECT_EQ(weir.exit_code, 2);
  EXPECT_EQ(weir.out, "") << "the program was started";
  EXPECT_EQ(std::ranges::count(weir.err, '\n'), 1) << weir.err;
  EXPECT_TRUE(weir.err.starts_with("weir: ") && weir.err.ends_with('\n')) << weir.err;
  EXPECT_THAT(weir.err, HasSubstr(named));
}

/// The same for `weir run FLAGS -- PROGRAM`: an old file of --json stays, and no folder remains.
void expect_run_refused(Words flags, const std::string& named, Variables variables = {},
                        const std::string& program = FAKE_PROGRAM) {
  const TemporaryDirectory directory;
  const TemporaryDirectory temporary;
  const std::string json = directory.file("summary.json");
  write_file(json, "old");
  flags.insert(flags.end(), {"--json", json});
  variables.emplace("TMPDIR", temporary.file(""));
  expect_refused(run_words(std::move(flags), {"say", "started"}, program), named, variables);
  EXPECT_EQ(read_file(json), "old");
  EXPECT_EQ(directory.entries(), 1U);
  EXPECT_EQ(temporary.entries(), 0U);
}

TEST(WeirBadInput, Subcommands) {
  expect_refused({}, "run, info, doctor, ps, set, top, replay or timeline");
  expect_refused({"--"}, "run, info, doctor, ps, set, top, replay or timeline");
  expect_refused({"replay", "--summary"}, "weir: TRACE is required (see weir replay --help)\n");
  expect_refused({"fly"},
                 "'fly' is not known: run, info, doctor, ps, set, top, replay or timeline");
  expect_refused({"reply"}, "'reply' is not known: did you mean replay? (see weir --help)\n");
  expect_refused({"--wings"}, "--wings is not a flag of weir (see weir --help)\n");
  expect_refused({"info", "--wings"},
                 "--wings is not a flag of weir info (see weir info --help)\n");
  expect_refused({"info", "--", "words"},
                 "'words' was not expected: weir info takes no arguments (see weir info --help)\n");
  expect_refused({"info", "++"}, "'++' was not expected: weir info takes no arguments");
  expect_refused(
      {"info", "--hooks", "--json", "-"},
      "--hooks and --json exclude each other: give one of them (see weir info --help)\n");
}

TEST(WeirBadInput, FlagsOfEachDepthPointToTheirHelp) {
  expect_refused({"timeline", "repot"}, "did you mean report? (see weir timeline --help)\n");
  expect_refused({"timeline", "record", "--wings"}, "(see weir timeline record --help)\n");
  expect_refused({"timeline", "convert", "x.json", "-o"},
                 "-o needs a value: FILE (see weir timeline convert --help)\n");
  expect_refused({"run", "--budgt", "3"}, "did you mean --budget? (see weir run --help)\n");
  expect_refused({"--budget", "3", "run"}, "but of weir run (see weir run --help)\n");
}

TEST(WeirBadInput, RunWithoutAProgram) {
  expect_refused({"run"}, "weir run [FLAGS] -- PROGRAM");
  expect_refused({"run", "--"}, "weir run [FLAGS] -- PROGRAM");
  expect_refused({"run", FAKE_PROGRAM}, "comes after --");
  expect_refused({"run", "--budget", "--", FAKE_PROGRAM},
                 "--budget needs a value before --: BYTES|PERCENT (see weir run --help)\n");
}

TEST(WeirBadInput, EachFlag) {
  expect_run_refused({"--budget", "lots"}, "--budget='lots' is not allowed");
  expect_run_refused({"--budget", ""}, "--budget='' is not allowed");
  expect_run_refused({"--policy", "fast"}, "--policy='fast' is not allowed");
  expect_run_refused({"--run-ahead", "0"}, "--run-ahead='0' is not allowed");
  expect_run_refused({"--pool", "slab"}, "--pool='slab' is not allowed");
  expect_run_refused({"--batch-range", ""}, "--batch-range='' is not allowed");
  expect_run_refused({"--allocator", "native"},
                     "--allocator='native' is not allowed: framework or async");
  expect_run_refused({"--torch", "native"}, "--torch='native' is not allowed: plug, async or off");
  expect_run_refused({"--torch", ""}, "--torch='' is not allowed");
  expect_run_refused({"--allocator", ""}, "--allocator='' is not allowed");
  expect_run_refused({"--max-wait", "10"}, "--max-wait='10' is not allowed");
  expect_run_refused({"--spill", "disk"}, "--spill='disk' is not allowed: off or host");
  expect_run_refused({"--log", "loud"}, "--log='loud' is not allowed");
}

TEST(WeirBadInput, EachVariable) {
  for (const char* name :
       {"WEIR_BUDGET", "WEIR_POLICY", "WEIR_RUN_AHEAD", "WEIR_POOL", "WEIR_POOL_PAGE_SIZE",
        "WEIR_POOL_LINEAR_CUTOFF", "WEIR_POOL_LARGE_ROUND_SIZE", "WEIR_ALLOC_LOG_LIMIT",
        "WEIR_SYNC_FREE", "WEIR_MAX_WAIT", "WEIR_NVML", "WEIR_SPILL", "WEIR_TORCH", "WEIR_LOG",
        "WEIR_ALLOCATOR"}) {
    const std::string named = std::string(name) + "='bad' is not allowed";
    expect_run_refused({}, named, {{name, "bad"}});
    expect_refused({"info"}, named, {{name, "bad"}});
  }
  expect_run_refused({}, "WEIR_POOL_PAGE_SIZE",
                     {{"WEIR_POOL", "round"}, {"WEIR_POOL_PAGE_SIZE", "5000"}});
  expect_run_refused({}, "WEIR_ALLOC_LOG='/nowhere/log'", {{"WEIR_ALLOC_LOG", "/nowhere/log"}});
  expect_run_refused({}, "TMPDIR='/nowhere'", {{"TMPDIR", "/nowhere"}});
}

TEST(WeirBadInput, FilesThatCannotBeWritten) {
  for (const char* path : {"/nowhere/summary.json", "/", "/nowhere/%p.json", ""}) {
    expect_refused(run_words({"--json", path}, {"say", "started"}),
                   "--json='" + std::string(path).substr(0, 8));
  }
  expect_refused(run_words({}, {"say", "started"}), "WEIR_SUMMARY='/nowhere/s.json'",
                 {{"WEIR_SUMMARY", "/nowhere/s.json"}});
  const TemporaryDirectory directory;
  const std::string same = directory.file("file");
  expect_refused(run_words({"--json", same}, {"say", "started"}), "WEIR_ALLOC_LOG",
                 {{"WEIR_ALLOC_LOG", same}});
  EXPECT_EQ(directory.entries(), 0U);
}

TEST(WeirBadInput, AnOutputMayNotBeWhatTheProgramReads) {
  const TemporaryDirectory directory;
  const std::string script = directory.file("train.py");
  write_file(script, "#!/bin/sh\necho started\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  std::filesystem::create_hard_link(script, directory.file("hard"));
  const std::string before = read_file(script);
  for (const std::string& output : {script, directory.file("hard")}) {
    expect_refused(run_words({"--json", output}, {}, script), "--json='" + output + "'");
    expect_refused(run_words({"--json", output}, {script}, "/bin/sh"), "--json='" + output + "'");
    expect_refused(run_words({}, {script}, "/bin/sh"), "WEIR_ALLOC_LOG='" + output + "'",
                   {{"WEIR_ALLOC_LOG", output}});
  }
  EXPECT_EQ(read_file(script), before);
}

TEST(WeirBadInput, Libraries) {
  const TemporaryDirectory directory;
  const auto refused = [&](const std::string& name, const std::string& contents,
                           const std::string& why) {
    const std::string path = directory.file(name);
    write_file(path, contents);
    expect_run_refused({"--library", path}, "--library='" + path + "' is not allowed: ");
    expect_run_refused({}, "WEIR_LIBRARY='" + path + "'", {{"WEIR_LIBRARY", path}});
    expect_run_refused({"--library", path}, why);
    expect_refused({"info", "--library"}, why, {{"WEIR_LIBRARY", path}});
  };
  refused("text.so", "INPUT(libweir.so)", "not an ELF file");
  refused("narrow.so", elf32_bytes(), "a 32-bit library");
  refused("other.so", elf_bytes({.machine = EM_S390}), "for another");
  refused("program", elf_bytes({.type = ET_EXEC}), "this is a program");
  refused("cut.so", elf_bytes().substr(0, 40), "truncated");
  refused("with space.so", elf_bytes(), "without spaces and colons");
  expect_run_refused({"--library", "/nowhere/libweir.so"}, "there is no such file");
  expect_run_refused({"--library", directory.file("")}, "not a file");
  expect_run_refused({"--library", ""}, "--library=''");
}

TEST(WeirBadInput, ProgramsThatNothingCanBePreloadedInto) {
  const TemporaryDirectory directory;
  const auto program = [&](const std::string& name, const std::string& contents) {
    const std::string path = directory.file(name);
    write_file(path, contents);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  };
  expect_run_refused({}, "is a 32-bit program", {}, program("narrow", elf32_bytes()));
  const std::string fixed = program("static", elf_bytes({.loader = false}));
  expect_run_refused({}, "'" + fixed + "' is statically linked: nothing can be preloaded into it",
                     {}, fixed);
  expect_run_refused({}, "which runs the script", {}, program("script", "#!" + fixed + "\n"));
  expect_run_refused({}, "'nowhere' is not in any folder of PATH", {}, "nowhere");
  expect_run_refused({}, "No such file", {}, "/nowhere/program");
  expect_run_refused({}, "is a folder", {}, directory.file(""));
  const std::string plain = program("plain", elf_bytes());
  chmod(plain.c_str(), 0600);
  expect_run_refused({}, "is not executable", {}, plain);
}

TEST(WeirBadInput, AProgramThatOnlyTheKernelFindsFault) {
  const TemporaryDirectory directory;
  const TemporaryDirectory temporary;
  const std::string path = directory.file("hollow");
  const std::string json = directory.file("summary.json");
  write_file(path, elf_bytes());
  write_file(json, "old");
  chmod(path.c_str(), 0700);
  const Finished weir =
      run_weir(run_words({"--json", json}, {}, path), {{"TMPDIR", temporary.file("")}});
  EXPECT_EQ(weir.exit_code, 2);
  // The kernel is asked last, after the line about the allocator.
  const std::string err = after_allocator(weir.err);
  EXPECT_TRUE(err.starts_with("weir: '" + path + "' cannot be started: ")) << weir.err;
  EXPECT_EQ(std::ranges::count(err, '\n'), 1) << weir.err;
  EXPECT_EQ(read_file(json), "old");
  EXPECT_EQ(directory.entries(), 2U);
  EXPECT_EQ(temporary.entries(), 0U);
}

// Only root can make another user the owner; ProgramTest has the rule for everyone.
TEST(WeirBadInput, AProgramThatChangesItsUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const TemporaryDirectory directory;
  const std::string path = directory.file("other-user");
  std::filesystem::copy_file(FAKE_PROGRAM, path);
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod(path.c_str(), 04755), 0);
  const std::string why = "changes its user or group when it starts (set-user-id or set-group-id)";
  expect_run_refused({}, "'" + path + "' " + why + ", and the loader ignores LD_PRELOAD there", {},
                     path);
  const std::string script = directory.file("script");
  write_file(script, "#!/usr/bin/env other-user\n");
  ASSERT_EQ(chmod(script.c_str(), 0755), 0);
  expect_run_refused({}, "which runs the script '" + script + "', " + why,
                     {{"PATH", directory.file("") + ":/usr/bin:/bin"}}, script);
}

/// `weir WORDS` by user 65534.
Finished run_as_other(Words words) {
  const Words before{"--reuid=65534", "--regid=65534", "--clear-groups", WEIR_TRAIN_PROGRAM};
  words.insert(words.begin(), before.begin(), before.end());
  return ChildProcess(words, {.program = "/usr/bin/setpriv", .environment = with_library({})})
      .wait();
}

/// Only root can become another user, and a build may be unreadable to others.
bool others_can_run_weir() { return geteuid() == 0 && run_as_other({"--version"}).exit_code == 0; }

// Root can read every file, so another user must start it.
TEST(WeirBadInput, AProgramThatChangesItsUserAndCannotBeRead) {
  if (!others_can_run_weir()) GTEST_SKIP() << "it takes root, and a build that others can read";
  const TemporaryDirectory directory;
  ASSERT_EQ(chmod(directory.file("").c_str(), 0755), 0);
  const std::string path = directory.file("roots");
  std::filesystem::copy_file(FAKE_PROGRAM, path);
  ASSERT_EQ(chmod(path.c_str(), 04711), 0);
  const Finished weir = run_as_other(run_words({}, {"say", "started"}, path));
  EXPECT_EQ(weir.exit_code, 2);
  EXPECT_EQ(weir.out, "") << "the program was started";
  EXPECT_THAT(weir.err, HasSubstr("' changes its user or group"));
  EXPECT_EQ(std::ranges::count(weir.err, '\n'), 1) << weir.err;
  if (WEIR_TEST_SANITIZED != 0) return;  // a sanitizer reads its own program
  ASSERT_EQ(chmod(path.c_str(), 0711), 0);
  const Finished plain = run_as_other(run_words({}, {"say", "started"}, path));
  EXPECT_EQ(plain.out, "started\n") << plain.err;
}

// Root already has every capability, so another user must start it.
TEST(WeirBadInput, AProgramWithFileCapabilities) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("capable");
  std::filesystem::copy_file(FAKE_PROGRAM, path);
  const std::string bytes = capability_bytes({.permitted = 1U << CAP_NET_RAW});
  if (!others_can_run_weir() ||
      setxattr(path.c_str(), "security.capability", bytes.data(), bytes.size(), 0) != 0) {
    GTEST_SKIP()
        << "it takes root, a build that others can read, and a file system with attributes";
  }
  ASSERT_EQ(chmod(directory.file("").c_str(), 0755), 0);
  const Finished root = run_weir(run_words({}, {"say", "started"}, path));
  EXPECT_EQ(root.out, "started\n") << root.err;
  const Finished other = run_as_other(run_words({}, {"say", "started"}, path));
  EXPECT_EQ(other.exit_code, 2) << other.err;
  EXPECT_EQ(other.out, "");
  EXPECT_EQ(other.err, "weir: '" + path +
                           "' has file capabilities, and the loader ignores LD_PRELOAD there: "
                           "run a copy without them (cp leaves them out), or as root\n");
}

}  // namespace
}  // namespace weir::testing
