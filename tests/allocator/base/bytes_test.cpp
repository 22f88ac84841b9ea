#include "allocator/base/bytes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "support/print.hpp"

namespace weir {
namespace {

TEST(Bytes, ParsesASizeWithItsUnit) {
  EXPECT_EQ(parse_bytes("0B"), Bytes{0});
  EXPECT_EQ(parse_bytes("4096B"), Bytes{4096});
  EXPECT_EQ(parse_bytes("3KiB"), Bytes{3072});
  EXPECT_EQ(parse_bytes("96MiB"), Bytes{100663296});
  EXPECT_EQ(parse_bytes("6GiB"), Bytes{6442450944});
  EXPECT_EQ(parse_bytes("2TiB"), Bytes{2199023255552});
  EXPECT_EQ(parse_bytes("1.5GiB"), Bytes{1610612736});
  EXPECT_EQ(parse_bytes("0.25KiB"), Bytes{256});
}

TEST(Bytes, RefusesWhatIsNoSize) {
  for (const char* text : {"",        "B",      "MiB",    "96",      "96MB",   "96mib",  "96 MiB",
                           " 96MiB",  "96MiB ", "-1MiB",  "-1.5MiB", "+1MiB",  "1e3MiB", "0x10B",
                           "1..5GiB", "nanB",   "infGiB", "1,5GiB",  "96MiBB", "MiB96"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << "'" << text << "'";
  }
}

TEST(Bytes, RefusesWhatDoesNotFit64Bits) {
  EXPECT_EQ(parse_bytes("18446744073709551615B"), Bytes{UINT64_MAX});
  EXPECT_EQ(parse_bytes("16777215TiB"), Bytes{std::uint64_t{16777215} << 40U});
  for (const char* text :
       {"18446744073709551616B", "16777216TiB", "99999999999999999999GiB", "99999999999.5TiB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(Bytes, AWholeNumberStandsAlone) {
  EXPECT_EQ(parse_whole("0"), 0U);
  EXPECT_EQ(parse_whole("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", " 1", "1 ", "-1", "+1", "1.0", "0x1", "18446744073709551616"}) {
    EXPECT_EQ(parse_whole(text), std::nullopt) << "'" << text << "'";
  }
}

TEST(Bytes, AreWrittenExactlyOrWithThreeDigits) {
  EXPECT_EQ(format_bytes({0}), "0 B");
  EXPECT_EQ(format_bytes({512}), "512 B");
  EXPECT_EQ(format_bytes({1023}), "1023 B");
  EXPECT_EQ(format_bytes({1024}), "1 KiB");
  EXPECT_EQ(format_bytes({1536}), "1.50 KiB");
  EXPECT_EQ(format_bytes(mib(96)), "96 MiB");
  EXPECT_EQ(format_bytes(mib(20) + kib(512)), "20.5 MiB");
  EXPECT_EQ(format_bytes(gib(200) + mib(512)), "200 GiB");
  EXPECT_EQ(format_bytes({std::uint64_t{3} << 40U}), "3 TiB");
  EXPECT_EQ(format_bytes(gib(2048) + gib(512)), "2.50 TiB");
}

TEST(Bytes, WrittenExactlyAreReadBack) {
  for (const Bytes size :
       {Bytes{1}, Bytes{1023}, kib(1), kib(1023), mib(7), gib(1023), gib(4096)}) {
    std::string text = format_bytes(size);
    std::erase(text, ' ');
    EXPECT_EQ(parse_bytes(text), size) << text;
  }
}

TEST(Bytes, ExactTextIsReadBackAndShort) {
  EXPECT_EQ(exact_bytes({0}), "0B");
  EXPECT_EQ(exact_bytes(gib(1024)), "1TiB");
  EXPECT_EQ(exact_bytes(mib(1536)), "1.5GiB");
  EXPECT_EQ(exact_bytes(mib(1) + kib(136) + Bytes{1}), "1187841B");
  const Bytes machine{12'670'153'728};  // 11.8 GiB with three digits
  EXPECT_EQ(exact_bytes(machine), "12373197KiB");
  for (const Bytes size : {machine, Bytes{UINT64_MAX}, Bytes{(1ULL << 53U) + 1}, gib(3) + Bytes{1},
                           kib(5) + Bytes{512}, Bytes{1}, mib(4) + kib(16)}) {
    EXPECT_EQ(parse_bytes(exact_bytes(size)), size) << exact_bytes(size);
  }
}

TEST(Bytes, WhatIsLeftIsNeverNegative) {
  EXPECT_EQ(minus_or_zero({5}, {3}), Bytes{2});
  EXPECT_EQ(minus_or_zero({3}, {3}), Bytes{0});
  EXPECT_EQ(minus_or_zero({3}, {5}), Bytes{0});
}

}  // namespace
}  // namespace weir
