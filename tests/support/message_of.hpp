#pragma once

// What a call that must throw has to say.

#include <gtest/gtest.h>

#include <string>

namespace weir::testing {

/// The message of the `Expected` that `call` throws; a failure of the test, and nothing, if it
/// throws none.
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
