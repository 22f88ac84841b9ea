#include "tools/replay/show/picture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "support/random_seed.hpp"
#include "support/xml.hpp"
#include "tools/program/picture/svg.hpp"
#include "tools/replay/measure/pools.hpp"
#include "tools/replay/show/plot.hpp"
#include "traces.hpp"

namespace weir::testing {
namespace {

using replay::AddressMap;
using replay::Levels;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

std::vector<replay::Candidate> candidates_of(const char* pools) {
  PoolOptions base;
  base.budget = BudgetRequest{.percent = 100};
  std::vector<replay::Candidate> candidates;
  for (const auto& choice : replay::parse_pool_choices("t", pools, base)) {
    candidates.push_back(replay::candidate_of(
        choice, [](Bytes capacity) { return std::make_unique<SimulatedUpstream>(capacity); }, 0));
  }
  return candidates;
}

replay::Picture picture_of(const replay::Trace& trace, const char* pools, Bytes capacity = gib(8)) {
  replay::Picture picture{.title = "a trace",
                          .subtitle = "as it was",
                          .bands = {},
                          .mapped = {},
                          .map = AddressMap(trace.operations.size())};
  for (const replay::Candidate& candidate : candidates_of(pools)) {
    const bool last = picture.bands.empty();
    picture.bands.push_back(
        replay::record_band(trace, candidate, capacity, last ? &*picture.map : nullptr));
    if (last) picture.mapped = candidate.name;
  }
  return picture;
}

TEST(ReplayXml, CheckFindsWhatIsNotWellFormed) {
  EXPECT_EQ(xml_fault("<a x=\"1\"><b/>t &amp; u</a>\n"), "");
  for (const char* text : {"", "t", "<a>", "<a></b>", "<a></a><b/>", "<a x=1/>", "<a x=\"1/>",
                           "<a x=\"1\" x=\"2\"/>", "<a>t & u</a>", "<a>t > u</a>", "<a/", "<a/>t",
                           "<a x=\"<\"/>", "<a>\xc3\xa4</a>", "</a>"}) {
    EXPECT_NE(xml_fault(text), "") << text;
  }
}

TEST(ReplayPicture, TimelineHasTheHighestLevelsOfEachColumn) {
  replay::LevelColumns levels(6, 3);
  const replay::Operation operation{};
  const auto add = [&](std::uint64_t i, std::uint64_t requested, std::uint64_t reserved) {
    replay::Footprint footprint;
    footprint.allocated = {requested + 1};
    footprint.reserved = {reserved};
    levels.add(
        {.operation = i, .what = operation, .requested = {requested}, .footprint = footprint});
  };
  add(0, 10, 50);
  add(1, 20, 40);
  add(2, 5, 40);
  add(3, 4, 60);
  EXPECT_EQ(levels.width(), 3U);
  EXPECT_THAT(levels.columns(), ElementsAre(Levels{{20}, {21}, {50}}, Levels{{5}, {6}, {60}}));
  EXPECT_EQ(replay::LevelColumns(2, 3).width(), 2U);
}

/// The rows of a raster from the lowest address up: `.` nothing, `o` a hole, `+` partly live, `#`.
std::vector<std::string> rows_of(const replay::Raster& raster) {
  std::vector<std::string> rows;
  for (std::size_t row = 0; row < raster.rows; ++row) {
    std::string text;
    for (std::size_t column = 0; column < raster.columns; ++column) {
      text += ".o+#"[static_cast<unsigned>(raster.at(row, column))];
    }
    rows.push_back(text);
  }
  return rows;
}

TEST(ReplayPicture, MapShowsWhatIsLiveWhatIsAHoleAndWhatIsNotHeld) {
  // Two pages come from the driver at operations 0 and 2, far apart; the first returns at 6.
  AddressMap map(8);
  const auto pointer = [](std::uint64_t address) { return reinterpret_cast<const void*>(address); };
  const replay::Footprint footprint;
  std::uint64_t now = 0;
  const auto step = [&](const replay::Operation& what, std::uint64_t address) {
    map.add({.operation = now++,
             .what = what,
             .pointer = pointer(address),
             .requested = {},
             .footprint = footprint});
  };
  map.add(replay::DriverEvent{.address = 4096, .size = {4096}, .obtained = true});
  step(allocate(0, 4096), 4096);
  step(use(0, 4096, 1), 4096);
  map.add(replay::DriverEvent{.address = 1 << 20, .size = {4096}, .obtained = true});
  step(allocate(1, 2048), 1 << 20);
  step(release(0, 4096), 4096);
  step(allocate(2, 1200), 4096);
  step(release(2, 1200), 4096);
  map.add(replay::DriverEvent{.address = 4096, .size = {4096}, .obtained = false});
  step(use(1, 2048, 1), 1 << 20);
  step(use(1, 2048, 1), 1 << 20);
  map.finish(8);
  EXPECT_EQ(map.height(), kib(8));
  EXPECT_EQ(map.left_out(), Bytes{});
  EXPECT_THAT(rows_of(map.raster(8, 4)),
              ElementsAre("###o+o..",  // 1200 of 2048 bytes, 4 to 5
                          "###ooo..", "..######", "..oooooo"));
}

TEST(ReplayPicture, MapOfNothingHeldIsEmpty) {
  AddressMap map(4);
  map.finish(4);
  EXPECT_EQ(map.height(), Bytes{});
  EXPECT_THAT(rows_of(map.raster(2, 2)), ElementsAre("..", ".."));
}

TEST(ReplayPicture, HasABandForEachPoolALegendAxesAndUnits) {
  const replay::Trace trace =
      trace_of({allocate(0, 3 << 20), allocate(1, 1 << 20), release(0, 3 << 20)}, 2);
  const std::string svg = draw(picture_of(trace, "naive,round"));
  EXPECT_EQ(xml_fault(svg), "");
  for (const char* part :
       {"<title>a trace</title>", ">as it was<", ">requested<", ">naive<", ">round:24<",
        ">operation<", ">2 MiB<", ">4 MiB<", ">peak reserved 5 MiB, fragmentation 0.0%<",
        ">naive: what lay where<", ">a hole that holds memory<", ">memory<", ">address<",
        "<title>operations 0 to 1: requested 3 MiB, allocated 4 MiB, reserved 4 MiB</title>",
        "<title>operations 1 to 2: requested 4 MiB, ", "<title>in use</title>"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
}

/// The share of its plot's height for each path of `look`, in drawing order.
std::vector<double> heights_of(const std::string& svg, const std::string& look) {
  std::vector<double> heights;
  const std::regex path("<path d=\"M[0-9.]+ ([0-9.]+)([^\"]*)\" " + look + "/>");
  const std::regex level("V(-?[0-9.]+)");
  for (std::sregex_iterator at(svg.begin(), svg.end(), path), end; at != end; ++at) {
    const double bottom = std::stod((*at)[1]);
    double highest = bottom;
    const std::string steps = (*at)[2];
    for (std::sregex_iterator step(steps.begin(), steps.end(), level); step != end; ++step) {
      highest = std::min(highest, std::stod((*step)[1]));
    }
    heights.push_back((bottom - highest) / replay::look::kBand);
  }
  return heights;
}

TEST(ReplayPicture, APoolThatTakesTheWholeDeviceIsCutOffAndLeavesTheScaleToTheOthers) {
  const replay::Trace trace =
      trace_of({allocate(0, 3 << 20), allocate(1, 1 << 20), release(0, 3 << 20)}, 2);
  const std::string svg = draw(picture_of(trace, "best_fit:all,naive,round", gib(1024)));
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr(">4 MiB<"));
  EXPECT_THAT(svg, Not(HasSubstr("GiB<"))) << "no axis goes up to what nobody used";
  EXPECT_THAT(svg, HasSubstr(">peak reserved 1 TiB (cut off here), fragmentation 100.0%<"));
  EXPECT_THAT(svg, HasSubstr(">peak reserved 5 MiB, fragmentation 0.0%<"));
  EXPECT_THAT(heights_of(svg, replay::look::kLive), Each(AllOf(Gt(0.5), Le(1))));
  EXPECT_THAT(heights_of(svg, replay::look::kReserved), Each(AllOf(Gt(0.5), Le(1))));
  // The map, of the same pool.
  EXPECT_THAT(svg, HasSubstr("never in use are omitted, and 1024 GiB that is held there<"));
  EXPECT_THAT(svg, ContainsRegex("<path d=\"M[^\"]*\" fill=\"#1f5c99\" shape-rendering"));
}

TEST(ReplayPicture, IsScaledByWhatWasHandedOutWhereEveryPoolTakesAll) {
  const replay::Trace trace = trace_of({allocate(0, 3 << 20)}, 1);
  const std::string svg = draw(picture_of(trace, "best_fit:all", gib(1024)));
  EXPECT_THAT(heights_of(svg, replay::look::kLive), ElementsAre(Gt(0.9)));
}

TEST(ReplayPicture, TextCannotBreakIt) {
  replay::Picture picture = picture_of(trace_of({allocate(0, 1)}, 1), "naive");
  picture.title = "a <b> & \"c\" \xff\x01";
  const std::string svg = draw(picture);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("<title>a &lt;b&gt; &amp; &quot;c&quot; ?"
                             "?</title>"));
}

TEST(ReplayPicture, OfAReplayThatRanOutEndsThere) {
  const replay::Trace trace = trace_of({allocate(0, 1 << 20), allocate(1, 8 << 20)}, 2);
  const std::string svg = draw(picture_of(trace, "naive", mib(4)));
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("out of memory at operation 2"));
}

TEST(ReplayPicture, StaysSmallWhateverTheTrace) {
  SCOPED_TRACE(seed_message(random_seed()));
  std::mt19937_64 random(random_seed());
  std::vector<replay::Operation> operations;
  std::vector<replay::Operation> live;
  std::uint32_t buffers = 0;
  while (operations.size() < 30'000) {
    if (live.size() > 400) {
      std::swap(live[random() % live.size()], live.back());
      operations.push_back(release(live.back().buffer, live.back().bytes.count));
      live.pop_back();
    } else {
      live.push_back(allocate(buffers++, 1 + random() % (1U << (10 + random() % 12))));
      operations.push_back(live.back());
    }
  }
  const std::string svg =
      draw(picture_of(trace_of(operations, buffers),
                      "naive,round,unpooled,round:20,round:21,round:22,round:23,naive:1MiB"));
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_LT(svg.size(), 500'000U);
  EXPECT_GT(svg.size(), 100'000U) << "the map is there";
}

}  // namespace
}  // namespace weir::testing
