// Which driver a library of these objects is: the one source that each compiles for itself.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

int built_version() { return WEIR_STANDIN_VERSION; }

}  // namespace weir::standin
