#pragma once

/// @file
/// Before the first step: do all ranks do the same training?

#include <string>
#include <vector>

#include "trainer/ranks/communicator.hpp"

namespace weir {

/// One fact that must be equal on every rank: a setting, a seed, a hash of the data.
struct AgreedField {
  std::string name{};   ///< as the user knows it: `--seed`, `the data's hash`
  std::string value{};  ///< as text, without zero bytes
  /// Both must be equal.
  friend bool operator==(const AgreedField&, const AgreedField&) = default;
};

/// Compares the version of Weir and all fields, in this order, on all ranks. If they differ,
/// finishes `ranks` and throws UsageError on every rank, with the same line: the first field that
/// differs, and who has which value.
void agree(Communicator& ranks, std::vector<AgreedField> fields);

/// Lets all ranks end where one cannot begin, say for a file that only it cannot open: the others
/// would wait for it. Each rank calls it, with its own refusal or an empty text. Returns if all are
/// empty. Otherwise finishes `ranks` and throws UsageError on every rank, with the same line: the
/// first refusal, and whose it is unless all ranks have the same.
void require_none_refused(Communicator& ranks, const std::string& refusal);

/// Returns that line, or nothing if all ranks have the same fields. `fields` are those of each
/// rank, at least one. Pure.
[[nodiscard]] std::string describe_difference(const std::vector<std::vector<AgreedField>>& fields);

}  // namespace weir
