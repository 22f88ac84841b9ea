#include "tools/program/printable.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Printable, ShowsControlsInsteadOfSendingThem) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\t\x7f", true), "a\\x1b[2Jb\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J",
                      true),
            "\\x9b2J");
  EXPECT_EQ(printable(std::string_view("a\0b", 3), true), "a\\x00b");
}

TEST(Printable, ShowsWhatIsNoUtf8ByteByByte) {
  EXPECT_EQ(printable("\xff\xc3", true), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\x80", true), "\\xc0\\x80");                    // too long
  EXPECT_EQ(printable("\xed\xa0\x80", true), "\\xed\\xa0\\x80");           // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80", true), "\\xf4\\x90\\x80\\x80");  // behind the last one
  EXPECT_EQ(printable("\xe2\x82", true), "\\xe2\\x82");                    // cut
}

TEST(Printable, ShowsMarksOfDirectionAndWhatNobodySees) {
  EXPECT_EQ(printable("a\u202eb", true), "a\\u202eb");
  EXPECT_EQ(printable("a\u200bb", true), "a\\u200bb");
  EXPECT_EQ(printable("\U000e0001", true), "\\U000e0001");
}

TEST(Printable, LeavesLettersOfAnyScript) {
  EXPECT_EQ(printable("é 漢 🚀", true), "é 漢 🚀");
  EXPECT_EQ(printable("é 漢 🚀", false), "? ? ?");
}

TEST(Printable, WideCharactersTakeTwoColumns) {
  EXPECT_EQ(columns_of("ab"), 2U);
  EXPECT_EQ(columns_of("é"), 1U);
  EXPECT_EQ(columns_of("漢🚀"), 4U);
}

TEST(Printable, IsFittedToItsColumnsExactly) {
  EXPECT_EQ(fitted("abc", 5, Align::kLeft), "abc  ");
  EXPECT_EQ(fitted("abc", 5, Align::kRight), "  abc");
  EXPECT_EQ(fitted("abcdef", 5, Align::kLeft), "abcde");
  EXPECT_EQ(fitted("漢漢漢", 5, Align::kLeft), "漢漢 ") << "no half of a character";
  EXPECT_EQ(fitted("", 0, Align::kLeft), "");
}

}  // namespace
}  // namespace weir
