// Limits of the system, and folders.

#include "doctor_cases.hpp"

namespace weir::cli::doctor::testing {
namespace {

TEST(DoctorLimits, Mappings) {
  const std::vector<Case> cases{
      {"enough", [](Facts&) {}, "mappings", State::kOk, "vm.max_map_count is 65530: enough", "",
       kNothing},
      {"a large machine", [](Facts& facts) { facts.limits.memory = gib(1024); }, "mappings",
       State::kWarn, "the pool paged on the cpu device maps 124 GiB of memory and no more",
       "sysctl -w vm.max_map_count=264144", kNothing},
      {"fewer than a program needs", [](Facts& facts) { facts.limits.max_mappings = 100; },
       "mappings", State::kWarn, "maps 0 B of memory", "sysctl", kNothing}};
  for (const Case& one : cases) expect_finding(one);
  LimitsFacts unknown = good_machine().limits;
  unknown.max_mappings.reset();
  for (const Finding& finding : check_limits(unknown)) EXPECT_NE(finding.check, "mappings");
}

TEST(DoctorLimits, OfTheProcess) {
  const std::vector<Case> cases{
      {"locked memory is unlimited", [](Facts&) {}, "locked-memory", State::kOk, "is unlimited", "",
       kNothing},
      {"some locked memory", [](Facts& facts) { facts.limits.locked_memory = mib(8).count; },
       "locked-memory", State::kOk, "locked memory (ulimit -l) is 8 MiB", "", kNothing},
      {"little locked memory", [](Facts& facts) { facts.limits.locked_memory = kib(64).count; },
       "locked-memory", State::kWarn, "is 64 KiB", "ulimit -l unlimited", kNothing},
      {"files are unlimited", [](Facts& facts) { facts.limits.open_files.reset(); }, "open-files",
       State::kOk, "are unlimited", "", kNothing},
      {"many files", [](Facts&) {}, "open-files", State::kOk, "are 1048576", "", kNothing},
      {"few files", [](Facts& facts) { facts.limits.open_files = 1024; }, "open-files",
       State::kWarn, "are 1024: of tensors in pages, 2 GiB can be shared", "ulimit -n 1048576",
       kNothing},
      {"few files at most",
       [](Facts& facts) {
         facts.limits.open_files = 1024;
         facts.limits.open_files_at_most = 1024;
       },
       "open-files", State::kWarn, "are 1024", "let root raise the hard limit", kNothing},
      {"few files, no hard limit",
       [](Facts& facts) {
         facts.limits.open_files = 1024;
         facts.limits.open_files_at_most.reset();
       },
       "open-files", State::kWarn, "are 1024", "ulimit -n unlimited", kNothing},
      {"addresses", [](Facts& facts) { facts.limits.addresses = gib(64).count; }, "addresses",
       State::kWarn, "addresses (ulimit -v) are limited to 64 GiB", "ulimit -v unlimited",
       kNothing},
      {"sizes of files", [](Facts& facts) { facts.limits.file_size = gib(1).count; }, "file-size",
       State::kWarn, "files (ulimit -f) are limited to 1 GiB", "ulimit -f unlimited", kNothing}};
  for (const Case& one : cases) expect_finding(one);
}

TEST(DoctorLimits, OfTheGroupAndTheSystem) {
  const std::vector<Case> cases{
      {"a group's limit", [](Facts& facts) { facts.limits.cgroup_memory = gib(48); }, "memory",
       State::kOk, "this process's group may use 48 GiB of the machine's 64 GiB", "", kNothing},
      {"a group's small limit", [](Facts& facts) { facts.limits.cgroup_memory = gib(8); }, "memory",
       State::kWarn, "may use 8 GiB", "--device-memory", kNothing},
      {"no overcommitting", [](Facts& facts) { facts.limits.overcommit = 2; }, "overcommit",
       State::kWarn, "vm.overcommit_memory is 2", "vm.overcommit_memory=0", kNothing}};
  for (const Case& one : cases) expect_finding(one);
  LimitsFacts whole = good_machine().limits;
  whole.cgroup_memory = gib(64);
  whole.overcommit = 1;
  for (const Finding& finding : check_limits(whole)) {
    EXPECT_NE(finding.check, "memory");
    EXPECT_NE(finding.check, "overcommit");
  }
}

TEST(DoctorLimits, Sharing) {
  const std::vector<Use> share{Use::kShare};
  const std::vector<Case> cases{
      {"none", [](Facts& facts) { facts.limits.shared_memory.reset(); }, "shared-memory",
       State::kFails, "there is no /dev/shm", "mount a tmpfs", share},
      {"not writable", [](Facts& facts) { facts.limits.shared_memory_writable = false; },
       "shared-memory", State::kFails, "may not write to /dev/shm", "chmod 1777", share},
      {"small", [](Facts& facts) { facts.limits.shared_memory = mib(64); }, "shared-memory",
       State::kOk, "64 MiB; workers of PyTorch may need more", "", kNothing},
      {"good", [](Facts&) {}, "shared-memory", State::kOk, "/dev/shm is writable, 32 GiB", "",
       kNothing},
      {"a filter", [](Facts& facts) { facts.limits.takes_files = false; }, "shared-tensors",
       State::kWarn, "pidfd_getfd is missing or forbidden", "WEIR_POOL=best_fit", kNothing},
      {"Yama", [](Facts& facts) { facts.limits.ptrace_scope = 2; }, "shared-tensors", State::kWarn,
       "kernel.yama.ptrace_scope is 2", "kernel.yama.ptrace_scope=1", kNothing},
      {"Yama's default", [](Facts& facts) { facts.limits.ptrace_scope = 1; }, "shared-tensors",
       State::kOk, "processes of one user may share tensors in pages", "", kNothing}};
  for (const Case& one : cases) expect_finding(one);
}

TEST(DoctorLimits, Folders) {
  const std::vector<Use> live{Use::kLive};
  const std::vector<Case> cases{
      {"published", [](Facts&) {}, "live", State::kOk, "/run/user/1000/weir", "", kNothing},
      {"not published", [](Facts& facts) { facts.limits.publishes = false; }, "live", State::kWarn,
       "WEIR_PUBLISH=0", "unset WEIR_PUBLISH", live},
      {"nowhere to publish",
       [](Facts& facts) {
         facts.limits.live_folder.clear();
         facts.limits.live_problem = "/dev/shm/weir-1000 (Permission denied)";
       },
       "live", State::kFails,
       "programs cannot publish for weir ps, top and set: /dev/shm/weir-1000 (Permission denied)",
       "chmod 700", live},
      {"nowhere to publish, by a setting",
       [](Facts& facts) {
         facts.limits.publish_is_set = true;
         facts.limits.live_folder.clear();
         facts.limits.live_problem = "/nowhere (No such file or directory)";
       },
       "live", State::kFails,
       "programs cannot publish for weir ps, top and set where WEIR_PUBLISH says: /nowhere",
       "set WEIR_PUBLISH", live},
      {"a folder for files", [](Facts&) {}, "temporary-folder", State::kOk,
       "weir run can write to /tmp", "", kNothing},
      {"no folder for files",
       [](Facts& facts) { facts.limits.temporary_problem = "No space left on device"; },
       "temporary-folder", State::kFails, "weir run cannot write to /tmp: No space left", "TMPDIR",
       kSwapIn}};
  for (const Case& one : cases) expect_finding(one);
}

}  // namespace
}  // namespace weir::cli::doctor::testing
