#include "tools/preload/hooks/pass.hpp"

#include <exception>
#include <string>

#include "allocator/base/log.hpp"

namespace weir::preload {

void report_refusal(Process& process, Device& device, const Wanted& wanted, Refusal refusal,
                    const Room& room) noexcept {
  attempt(LogLevel::kDebug, "a failure was not reported", [&] {
    const Account& account = device.account();
    std::string text = "out of memory: asked " + format_bytes(wanted.bytes) +
                       " of the driver for " + std::string(row_of(wanted.kind).what) + ", budget " +
                       format_bytes(account.budget()) + ", in use " + format_bytes(account.used()) +
                       "\n    " + room.found();
    if (refusal == Refusal::kDevice) {
      text += "\n    the budget has room, but the device has none: other programs use it";
    } else if (account.source() != nullptr) {
      text +=
          "\n    the budget is this process's part of a shared one, which had no more "
          "(WEIR_SHARE_FLOOR: what it always has)";
    }
    process.report(device, text);
  });
}

}  // namespace weir::preload
