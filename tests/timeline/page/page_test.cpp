// The texts, sizes and order of a page; browser_test.py checks it in a browser.

#include "tools/timeline/page/page.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "support/child_process.hpp"
#include "timeline/page/sample_pages.hpp"
#include "tools/timeline/page/data.hpp"

namespace weir::timeline {
namespace {

using testing::failing_timeline;
using testing::harmful_names;
using testing::harmful_timeline;
using testing::unbounded_timeline;
using weir::testing::occurrences;

nlohmann::json data_in(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Page, HasItsDataAndTwoScripts) {
  const std::string page = make_page(unbounded_timeline(), {.title = "a run"});
  EXPECT_EQ(occurrences(page, "<script"), 3);
  EXPECT_EQ(occurrences(page, "</script>"), 3);
  EXPECT_NE(page.find("<title>a run</title>"), std::string::npos);
  EXPECT_NE(page.find(kPageCss.text), std::string::npos);
  EXPECT_NE(page.find(kPlotScript.text), std::string::npos);
  EXPECT_NE(page.find("The above copyright notice and this permission notice"), std::string::npos);
  EXPECT_EQ(data_in(page)["processes"].size(), 1U);
}

TEST(Page, LetsOnlyItsOwnScriptsRunAndLoadsNothing) {
  const std::string page = make_page(unbounded_timeline());
  const std::size_t policy = page.find("default-src 'none'");
  ASSERT_NE(policy, std::string::npos);
  const std::string_view rest = std::string_view(page).substr(policy, 400);
  EXPECT_EQ(occurrences(rest.substr(0, rest.find('"')), "'sha256-"), 2);
  EXPECT_NE(rest.find("connect-src 'none'"), std::string_view::npos);
  EXPECT_EQ(page.find("sourceMappingURL"), std::string::npos);
  EXPECT_EQ(occurrences(page, " src="), 0);
}

TEST(Page, NamesThatMeanHarmStayTexts) {
  const std::string page = make_page(harmful_timeline(), {.title = harmful_names().front()});
  EXPECT_EQ(occurrences(page, "<script"), 3);
  EXPECT_EQ(occurrences(page, "</script>"), 3);
  EXPECT_EQ(occurrences(page, "<img"), 0);
  EXPECT_EQ(occurrences(page, "\xe2\x80\xa8"), 0);
  const nlohmann::json texts = data_in(page)["processes"][0]["texts"];
  std::vector<std::string> shown;
  for (const auto& text : texts) {
    shown.push_back(text.get<std::string>());
    EXPECT_LE(shown.back().size(), 403U);
  }
  EXPECT_NE(std::find(shown.begin(), shown.end(), harmful_names()[0]), shown.end());
}

TEST(Page, EscapedJsonIsTheSameJson) {
  const nlohmann::json json = {"<&>", "\xe2\x80\xa8\xe2\x80\xa9", "\xe2\x80\xaa", "plain \" \\"};
  const std::string escaped = escape_json(json.dump());
  EXPECT_EQ(escaped.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(occurrences(escaped, "\\u2028"), 1);
  EXPECT_EQ(nlohmann::json::parse(escaped), json);
}

TEST(Page, SaysFirstThatARecordingWasCutAndLostEvents) {
  const nlohmann::json process = data_in(make_page(failing_timeline()))["processes"][0];
  EXPECT_TRUE(process["alarm"].get<bool>());
  const std::string summary = process["summary"];
  EXPECT_LT(summary.find("cut"), summary.find("peak")) << summary;
  EXPECT_NE(summary.find("7 events"), std::string::npos) << summary;
  EXPECT_EQ(process["failures"].size(), 1U);
}

TEST(Page, SaysHowManyFailuresItDoesNotShow) {
  Timeline timeline;
  Process& process = timeline.processes.emplace_back();
  for (int i = 0; i < 30; ++i)
    process.records.push_back({.source = 1, .kind = TimelineKind::kFailure});
  const nlohmann::json peaks = data_in(make_page(timeline))["processes"][0]["peaks"];
  EXPECT_EQ(peaks.back()["title"], "Out of memory: 10 more");
}

TEST(Page, SaysWhichBarrierCostMost) {
  const nlohmann::json with = data_in(make_page(testing::made_timeline({.barrier_every = 10})));
  const nlohmann::json& process = with["processes"][0];
  const std::string sentence = process["first_barrier"];
  EXPECT_EQ(sentence.find("trainer/loop.py:88 read 4 times, "), 0U) << sentence;
  EXPECT_NE(sentence.find(" of device idle after it"), std::string::npos) << sentence;
  const nlohmann::json without = data_in(make_page(testing::made_timeline()));
  EXPECT_EQ(without["processes"][0]["first_barrier"], "");
}

TEST(Page, IsNamedAfterItsPrograms) {
  Timeline timeline;
  EXPECT_NE(make_page(timeline).find("<title>Weir timeline</title>"), std::string::npos);
  for (const char* const program : {"loop", "loop", "<train>", ""}) {
    timeline.processes.emplace_back().info.program = program;
  }
  EXPECT_NE(make_page(timeline).find("<title>Weir timeline of loop, &lt;train&gt;</title>"),
            std::string::npos);
}

TEST(Page, TablesWithoutNamesAreASentence) {
  Timeline timeline = testing::made_timeline({.batches = 5});
  const nlohmann::json named = data_in(make_page(timeline))["processes"][0]["peaks"][0];
  EXPECT_EQ(named["holdings"].size(), 3U);
  EXPECT_EQ(named["words"], "");
  for (TimelineRecord& record : timeline.processes.front().records) {
    if (record.kind == TimelineKind::kAllocate || record.kind == TimelineKind::kFree) {
      record.site = record.batch = 0;
    }
  }
  const nlohmann::json peak = data_in(make_page(timeline))["processes"][0]["peaks"][0];
  ASSERT_EQ(peak["holdings"].size(), 1U);
  EXPECT_EQ(peak["holdings"][0]["by"], "Label");
  EXPECT_EQ(peak["words"].get<std::string>().find("Not known here: kind of batch, call site."), 0U);
}

TEST(Page, OfNothingIsAPage) {
  EXPECT_EQ(data_in(make_page({}))["processes"].size(), 0U);
  Timeline nothing;
  nothing.processes.emplace_back();
  EXPECT_EQ(data_in(make_page(nothing))["processes"].size(), 1U);
}

TEST(Page, KeepsLessDetailToStayAsSmallAsAsked) {
  testing::MadeOptions options = testing::fast_loader();
  options.batches = 1500;
  const Timeline timeline = testing::made_timeline(options);
  const std::string whole = make_page(timeline, {.max_bytes = std::size_t{64} << 20U});
  const std::size_t most = (whole.size() + 200'000) / 2;
  const std::string small = make_page(timeline, {.max_bytes = most});
  EXPECT_GT(whole.size(), most);
  EXPECT_LE(small.size(), most);
  EXPECT_EQ(data_in(small)["processes"][0]["pools"][0]["peak"],
            data_in(whole)["processes"][0]["pools"][0]["peak"]);
}

TEST(Page, OfRecordsOfNoSenseIsAPage) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Timeline timeline;
    timeline.processes.push_back(testing::nonsense(seed, 400));
    EXPECT_EQ(data_in(make_page(timeline))["processes"].size(), 1U);
  }
}

}  // namespace
}  // namespace weir::timeline
