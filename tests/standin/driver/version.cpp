// The version of a driver library: the only source that each library compiles itself.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

int built_version() { return WEIR_STANDIN_VERSION; }

}  // namespace weir::standin
