// Part of every test program on the stand-in: a test fails if the driver or the runtime refused one
// of its calls that it did not name (support/refused.hpp), or did not refuse one that it named.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tests/standin/codes.hpp"
#include "tests/standin/standin.hpp"
#include "tests/support/refused.hpp"

namespace weir::testing {
namespace {

using Refused = std::set<std::pair<std::string, int>>;

Refused take_refused() {
  Refused all;
  const auto add = [](void* data, const WeirStandinRefused* refused) {
    static_cast<Refused*>(data)->emplace(refused->name, refused->code);
  };
  weir_standin_take_refused(add, &all);
  return all;
}

std::string describe(const std::string& call, int code) {
  const standin::Code* known = standin::find_code(code);
  return call + " returned " + std::to_string(code) +
         (known == nullptr ? "" : std::string(" (") + known->text + ")");
}

/// The test's mark.
std::set<std::string> expected_of(const ::testing::TestResult& result) {
  std::set<std::string> expected;
  for (int i = 0; i < result.test_property_count(); ++i) {
    const std::string key = result.GetTestProperty(i).key();
    if (key.starts_with("refused_")) expected.insert(key);
  }
  return expected;
}

class Listener final : public ::testing::EmptyTestEventListener {
 public:
  /// Calls that were refused before the test, as in SetUpTestSuite: no test can name them.
  void OnTestStart(const ::testing::TestInfo& /*test*/) override {
    fail_all("before the test, where nobody can expect it");
  }
  void OnTestEnd(const ::testing::TestInfo& test) override {
    std::set<std::string> expected = expected_of(*test.result());
    const bool any = expected.erase(kAnyRefusal) != 0;
    for (const auto& [call, code] : take_refused()) {
      if (expected.erase(refusal(call, code)) != 0 || any) continue;
      ADD_FAILURE() << describe(call, code) << ", and the test does not say expect_refused(\""
                    << call << "\", " << code << ")";
    }
    // A skipped or failed test may not have reached the call.
    if (test.result()->Failed() || test.result()->Skipped()) return;
    for (const std::string& missing : expected) {
      ADD_FAILURE() << missing << " was expected, and did not happen";
    }
  }
  /// Calls that TearDownTestSuite was refused: it cannot name them.
  void OnTestSuiteEnd(const ::testing::TestSuite& /*suite*/) override {
    fail_all("behind the last test of a suite");
  }

 private:
  static void fail_all(const char* where) {
    for (const auto& [call, code] : take_refused()) {
      ADD_FAILURE() << describe(call, code) << " " << where;
    }
  }
};

// GoogleTest owns it. Listeners are notified of an end in reverse order, so the printer hears of
// failures.
[[maybe_unused]] const bool kListens = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new Listener);
  return true;
}();

}  // namespace
}  // namespace weir::testing
