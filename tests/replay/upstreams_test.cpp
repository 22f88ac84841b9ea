// The sources of a replay's memory, and the count of calls to them.

#include "tools/replay/subject/upstreams.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "tools/replay/subject/pool_subject.hpp"

namespace weir::testing {
namespace {

using replay::CountedUpstream;
using replay::DriverEvent;
using replay::UpstreamKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ReplayUpstreams, AreNamedAndHaveTheCapacityThatIsAskedFor) {
  EXPECT_EQ(parse_name<replay::UpstreamKind>("t", "simulated"), UpstreamKind::kSimulated);
  EXPECT_EQ(parse_name<replay::UpstreamKind>("t", "cuda"), UpstreamKind::kCuda);
  for (const UpstreamKind kind : {UpstreamKind::kSimulated, UpstreamKind::kHost}) {
    const auto upstream = replay::upstreams_of(kind)(mib(3));
    EXPECT_EQ(upstream->capacity(), mib(3));
    EXPECT_EQ(upstream->allocate(mib(4)), nullptr);
  }
  EXPECT_THAT(
      message_of<UsageError>([] { (void)parse_name<replay::UpstreamKind>("--upstream", "disk"); }),
      HasSubstr("--upstream='disk' is not allowed: simulated, host or cuda"));
}

TEST(ReplayUpstreams, HaveRoomForAnyTraceUnlessTheMemoryIsReal) {
  EXPECT_EQ(replay::default_capacity(UpstreamKind::kSimulated, gib(1)), gib(1024));
  EXPECT_EQ(replay::default_capacity(UpstreamKind::kSimulated, gib(1024)), gib(16384));
  const Bytes host = replay::default_capacity(UpstreamKind::kHost, gib(1024));
  EXPECT_GT(host, mib(64));
  EXPECT_LT(host, gib(65536));
}

/// Simulated pages, of which a call maps at most two.
class FewPages final : public PageSource {
 public:
  [[nodiscard]] Bytes page_size() const override { return kib(4); }
  [[nodiscard]] void* reserve(Bytes /*size*/) override { return this; }
  void unreserve(void* /*address*/, Bytes /*size*/) noexcept override {}
  [[nodiscard]] std::size_t create(std::span<Page> pages) override { return pages.size(); }
  void destroy(std::span<const Page> /*pages*/) noexcept override {}
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override {
    return std::min<std::size_t>(mappings.size(), 2);
  }
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override {
    return mappings.size();
  }
};

class PagedUpstream final : public Upstream {
 public:
  [[nodiscard]] void* allocate(Bytes /*size*/) override { return nullptr; }
  void deallocate(void* /*pointer*/, Bytes /*size*/) noexcept override {}
  [[nodiscard]] Bytes capacity() const override { return gib(1); }
  [[nodiscard]] PageSource* pages() noexcept override { return &pages_; }

 private:
  FewPages pages_;
};

TEST(ReplayUpstreams, EveryCallIsCountedAndWhatComesOfItTold) {
  CountedUpstream upstream(std::make_unique<SimulatedUpstream>(kib(8)));
  std::vector<DriverEvent> events;
  upstream.tell([&](const DriverEvent& event) { events.push_back(event); });
  EXPECT_EQ(upstream.pages() != nullptr, SimulatedUpstream(kib(8)).pages() != nullptr);
  EXPECT_EQ(upstream.capacity(), kib(8));
  void* const pointer = upstream.allocate(kib(8));
  EXPECT_EQ(upstream.allocate(kib(1)), nullptr);
  upstream.deallocate(pointer, kib(8));
  EXPECT_EQ(upstream.counts().calls, 3U) << "one that is refused is a call";
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].address, reinterpret_cast<std::uintptr_t>(pointer));
  EXPECT_TRUE(events[0].obtained);
  EXPECT_FALSE(events[1].obtained);
  EXPECT_EQ(events[1].size, kib(8));
}

TEST(ReplayUpstreams, EveryPageIsACall) {
  CountedUpstream upstream(std::make_unique<PagedUpstream>());
  std::vector<std::pair<std::uint64_t, bool>> events;
  upstream.tell(
      [&](const DriverEvent& event) { events.emplace_back(event.address, event.obtained); });
  PageSource* const pages = upstream.pages();
  ASSERT_NE(pages, nullptr);
  EXPECT_EQ(pages->page_size(), kib(4));
  void* const range = pages->reserve(kib(12));
  std::array<Page, 3> some{{{1}, {2}, {3}}};
  EXPECT_EQ(pages->create(some), 3U);
  EXPECT_EQ(upstream.counts().calls, 4U);
  const auto at = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
  const std::array<Mapping, 3> mappings{{{at(4096), {1}}, {at(8192), {2}}, {at(12288), {3}}}};
  EXPECT_EQ(pages->map(mappings), 2U);
  EXPECT_EQ(upstream.counts().calls, 7U);
  EXPECT_EQ(upstream.counts().mapped_pages, 2U);
  EXPECT_EQ(pages->unmap(std::span(mappings).first(1)), 1U);
  pages->destroy(some);
  pages->unreserve(range, kib(12));
  EXPECT_EQ(upstream.counts().calls, 12U);
  EXPECT_THAT(events,
              ElementsAre(std::pair(4096U, true), std::pair(8192U, true), std::pair(4096U, false)));
}

}  // namespace
}  // namespace weir::testing
