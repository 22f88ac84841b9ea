// Groups whose facts cannot be collected.

#include <new>
#include <system_error>

#include "doctor_cases.hpp"

namespace weir::cli::doctor::testing {
namespace {

std::system_error error_of(std::errc code) {
  return std::system_error(std::make_error_code(code), "no pipe can be made");
}

TEST(DoctorMissed, WhatIsLackingIsTakenFromTheError) {
  EXPECT_EQ(lack_in(error_of(std::errc::too_many_files_open)), Lack::kFiles);
  EXPECT_EQ(lack_in(error_of(std::errc::too_many_files_open_in_system)), Lack::kFiles);
  EXPECT_EQ(lack_in(error_of(std::errc::not_enough_memory)), Lack::kMemory);
  EXPECT_EQ(lack_in(std::bad_alloc()), Lack::kMemory);
  EXPECT_EQ(lack_in(error_of(std::errc::resource_unavailable_try_again)), Lack::kProcesses);
  EXPECT_EQ(lack_in(error_of(std::errc::permission_denied)), Lack::kUnknown);
  EXPECT_EQ(lack_in(std::runtime_error("odd")), Lack::kUnknown);
}

template <Lack Lacking>
void miss_libraries(Facts& facts) {
  facts.missed = {{.group = Group::kLibrary, .why = "no pipe can be made", .lack = Lacking}};
}

TEST(DoctorMissed, AGroupHasThatAsItsFindingAndTheRemedy) {
  const std::string text = "libweir.so could not be looked at: no pipe can be made";
  const std::vector<Case> cases{
      {"files", miss_libraries<Lack::kFiles>, "missed", State::kFails, text, "ulimit -n", kSwapIn},
      {"memory", miss_libraries<Lack::kMemory>, "missed", State::kFails, text, "ulimit -v",
       kSwapIn},
      {"processes", miss_libraries<Lack::kProcesses>, "missed", State::kFails, text, "ulimit -u",
       kSwapIn},
      {"unknown", miss_libraries<Lack::kUnknown>, "missed", State::kFails, text, "report it",
       kSwapIn}};
  for (const Case& one : cases) expect_finding(one);
}

TEST(DoctorMissed, EachGroupCanBeAndTheOthersStay) {
  const std::vector<Finding> good = check_all(good_machine());
  for (const Group group : {Group::kSystem, Group::kDriver, Group::kLibrary, Group::kPython,
                            Group::kSettings, Group::kLimits, Group::kEnvironment}) {
    Facts facts = good_machine();
    facts.missed = {{.group = group, .why = "odd", .lack = Lack::kUnknown}};
    std::vector<Finding> found = check_all(facts);
    EXPECT_EQ(std::ranges::count(found, group, &Finding::group), 1);
    std::erase_if(found, [&](const Finding& finding) { return finding.group == group; });
    std::vector<Finding> others = good;
    std::erase_if(others, [&](const Finding& finding) { return finding.group == group; });
    EXPECT_EQ(found, others) << to_string(group);
  }
}

}  // namespace
}  // namespace weir::cli::doctor::testing
