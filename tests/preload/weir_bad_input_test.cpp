// Bad input of `weir`: one clear line and exit 2 before the program starts, and nothing is lost.

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

/// `weir WORDS` fails with one line that contains `named`.
void expect_refused(const Words& words, const std::string& named, const Variables& variables = {}) {
  SCOPED_TRACE(::testing::PrintToString(words));
  expect_refused_in_one_line(run_weir(words, variables), {named});
}

/// The same for `weir run FLAGS -- PROGRAM`.
void expect_run_refused(Words flags, const std::string& named, const Variables& variables = {}) {
  expect_refused(run_words(std::move(flags), {"say", "started"}), named, variables);
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
  expect_refused_in_one_line(weir, {"' changes its user or group"});
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
  expect_refused_in_one_line(other, {path, "file capabilities", "LD_PRELOAD"});
}

}  // namespace
}  // namespace weir::testing
