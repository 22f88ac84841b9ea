// docs/timeline-format.md describes the contents of a file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "../../trainer/temporary_directory.hpp"
#include "files.hpp"
#include "random_process.hpp"
#include "tools/timeline/chrome/text.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string in_code(std::string_view word) { return "`" + std::string(word) + "`"; }

/// Returns what the page's list items explain: the text before each item's first colon, of the
/// section below `heading`.
std::string explained(const std::string& page, const std::string& heading) {
  const std::size_t begin = page.find("\n" + heading + "\n");
  if (begin == std::string::npos) return {};
  std::istringstream section(page.substr(begin + heading.size() + 2));
  std::string heads;
  for (std::string line; std::getline(section, line) && !line.starts_with("## ");) {
    if (line.starts_with("- ")) heads += line.substr(0, line.find(": ")) + '\n';
  }
  return heads;
}

TEST(TimelineFormatPage, HasEveryKindAndEveryWordOfDetail) {
  const std::string page = weir::testing::read_file(WEIR_FORMAT_PAGE);
  const std::string kinds = explained(page, "## Kinds");
  for (std::size_t i = 0; i < kTimelineKinds; ++i) {
    const auto kind = static_cast<TimelineKind>(i);
    EXPECT_THAT(kinds, HasSubstr(in_code(kind_name(kind))));
    for (const std::string_view word : chrome::detail_words(kind)) {
      EXPECT_THAT(page, HasSubstr(in_code(word)));
    }
  }
}

TEST(TimelineFormatPage, HasEveryCounterThatIsWritten) {
  const std::string page = weir::testing::read_file(WEIR_FORMAT_PAGE);
  std::mt19937_64 random(2);
  Timeline timeline;
  timeline.processes.push_back(random_process(random, {.records = 3000}));
  std::set<std::string> counters;
  for (const Json& event : Json::parse(to_chrome(timeline))) {
    if (event.at("ph") != "C") continue;
    std::string name = event.at("name");
    for (const std::string of_pool : {"memory", "limits"}) {
      if (name.starts_with(of_pool + " ")) name = of_pool + " NAME";
    }
    counters.insert(name);
  }
  EXPECT_EQ(counters.size(), 6U);
  for (const std::string& name : counters) {
    EXPECT_THAT(explained(page, "## For viewers alone"), HasSubstr("`C` " + in_code(name)));
  }
}

TEST(TimelineFormatPage, HasEveryArgumentThatIsWritten) {
  const std::string page = weir::testing::read_file(WEIR_FORMAT_PAGE);
  std::mt19937_64 random(1);
  Timeline timeline;
  timeline.processes.push_back(random_process(random, {.records = 3000}));
  timeline.processes.back().info.rank = 1;
  std::set<std::string> words;
  for (const Json& event : Json::parse(to_chrome(timeline))) {
    for (const auto& [key, value] : event.items()) words.insert(key);
    if (!event.contains("args")) continue;
    for (const auto& [key, value] : event.at("args").items()) words.insert(key);
  }
  EXPECT_GT(words.size(), 30U);
  for (const std::string& word : words) EXPECT_THAT(page, HasSubstr(in_code(word)));
}

}  // namespace
}  // namespace weir::timeline::testing
