#pragma once

// The message of a call that must throw.

#include <gtest/gtest.h>

#include <string>

namespace weir::testing {

/// Returns the message of the `Expected` that `call` throws. If it throws none, the test fails and
/// the message is empty.
template <typename Expected, typename Call>
[[nodiscard]] std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace weir::testing
