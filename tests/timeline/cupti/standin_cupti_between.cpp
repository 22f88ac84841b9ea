// The newer function that identifies CUPTI 13.2: it has a few of them, and reads no records by one.

#include "timeline/cupti/standin_cupti_library.hpp"

namespace cupti = weir::timeline::cupti;

// NOLINTBEGIN(readability-identifier-naming): CUPTI's name
extern "C" cupti::Result cuptiActivityEnable_v2(cupti::Subscriber subscriber, cupti::Kind kind,
                                                void* /*config*/) {
  ENTER_AS(subscriber, "cuptiActivityEnable_v2")
  return weir::testing::standin_cupti_library().enable(kind, true);
}
// NOLINTEND(readability-identifier-naming)
