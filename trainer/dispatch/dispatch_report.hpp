#pragma once

// Formats the dispatch experiments as tables for people and as JSON for programs, with the same
// figures.

#include <string>

#include "trainer/dispatch/dispatch.hpp"

namespace weir {

/// `wide` adds the columns with details.
[[nodiscard]] std::string format_dispatch(const DispatchSettings& settings,
                                          const DispatchFigures& figures, bool wide = false);
[[nodiscard]] std::string dispatch_json(const DispatchSettings& settings,
                                        const DispatchFigures& figures);

}  // namespace weir
