#include "allocator/budget.hpp"

#include <cstdio>

#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"

namespace weir {
namespace {

/// On a device this full there is no default budget: a training run would start but get nowhere.
constexpr std::uint64_t kLeastShare = 20;

constexpr std::string_view kWantBudget =
    "a size above zero such as 96MiB or 6GiB, or a share of the device above 0% and up to 100%";

}  // namespace

BudgetRequest parse_budget(std::string_view name, std::string_view text) {
  if (text.ends_with('%')) {
    const auto percent = parse_decimal(text.substr(0, text.size() - 1));
    if (!percent || !(*percent > 0 && *percent <= 100)) refuse(name, text, kWantBudget);
    return {.percent = *percent};
  }
  const auto bytes = parse_bytes(text);
  if (!bytes || bytes->count == 0) refuse(name, text, kWantBudget);
  return {.bytes = *bytes};
}

BudgetRequest parse_reserve(std::string_view name, std::string_view text) {
  const auto percent = parse_whole(text);
  if (!percent || *percent >= 100) {
    refuse(name, text, "a whole percentage from 0 to 99 (100 leaves no memory)");
  }
  return {.percent = static_cast<double>(100 - *percent)};
}

Bytes resolve_budget(const BudgetRequest& request, Bytes total, std::string_view name) {
  const Bytes bytes = request.percent > 0
                          ? Bytes{static_cast<std::uint64_t>(static_cast<double>(total.count) *
                                                             request.percent / 100)}
                          : request.bytes;
  if (bytes.count == 0 || bytes > total) {
    refuse(name, format_budget(request),
           "above zero and at most the device's memory, " + format_bytes(total));
  }
  return bytes;
}

Bytes fit_budget(Bytes budget, Bytes available, Bytes total, std::string_view name,
                 bool by_default) {
  if (budget <= available) return budget;
  const std::string free =
      "only " + format_bytes(available) + " of the device's " + format_bytes(total) + " are free: ";
  if (!by_default) {
    throw UsageError(
        std::string(name) + " " + format_bytes(budget) + " does not fit: " + free +
        "stop other programs on the device, or set a budget of at most the free memory");
  }
  if (available.count < total.count / kLeastShare) {
    throw UsageError("the device is full: " + free +
                     "stop other programs on the device, or use another device");
  }
  return available;
}

std::string format_budget(const BudgetRequest& request) {
  if (request.percent <= 0) return format_bytes(request.bytes);
  char text[32];
  std::snprintf(text, sizeof text, "%g%%", request.percent);
  return text;
}

std::string exact_budget(const BudgetRequest& request) {
  if (request.percent <= 0) return exact_bytes(request.bytes);
  constexpr int kMostDigits = 15;  // as many as parse_decimal reads
  for (int digits = 0;; ++digits) {
    char text[48];
    std::snprintf(text, sizeof text, "%.*f", digits, request.percent);
    if (digits == kMostDigits || parse_decimal(text) == request.percent) {
      return std::string(text) + "%";
    }
  }
}

}  // namespace weir
