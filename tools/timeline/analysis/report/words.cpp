// Formats figures for people.

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "tools/timeline/analysis/barriers.hpp"
#include "tools/timeline/analysis/report/report.hpp"
#include "tools/timeline/analysis/report/summary.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {
namespace {

/// Formats with three significant digits, without trailing zeros.
std::string three_digits(double value) {
  const int digits = value >= 99.95 ? 0 : (value >= 9.995 ? 1 : 2);
  std::array<char, 48> text{};
  (void)std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  std::string number = text.data();
  if (number.find('.') != std::string::npos) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return number;
}

struct Unit {
  double bytes;
  std::string_view name;
};
constexpr std::array<Unit, 5> kUnits{
    {{0x1p40, " TiB"}, {0x1p30, " GiB"}, {0x1p20, " MiB"}, {0x1p10, " KiB"}, {1, " B"}}};

Unit unit_of(std::uint64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (static_cast<double>(bytes) >= unit.bytes) return unit;
  }
  return kUnits.back();
}

std::string amount(std::uint64_t bytes, const Unit& unit) {
  return three_digits(static_cast<double>(bytes) / unit.bytes);
}

std::string count_of(std::uint64_t count, std::string_view thing) {
  return std::to_string(count) + " " + std::string(thing) + (count == 1 ? "" : "s");
}

std::string tenths(std::uint64_t number) {
  return std::to_string(number / 10) + "." + std::to_string(number % 10);
}

/// Splits `total` in proportion to `parts`, so that the printed values add up.
template <std::size_t N>
std::array<std::uint64_t, N> share_out(std::uint64_t total,
                                       const std::array<std::uint64_t, N>& parts) {
  std::array<std::uint64_t, N> shares{};
  std::array<double, N> rests{};
  double sum = 0;
  for (const std::uint64_t part : parts) sum += static_cast<double>(part);
  if (sum <= 0) return shares;
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < N; ++i) {
    const double exact = static_cast<double>(total) * static_cast<double>(parts.at(i)) / sum;
    shares.at(i) = std::min(static_cast<std::uint64_t>(exact), total - given);
    rests.at(i) = exact - static_cast<double>(shares.at(i));
    given += shares.at(i);
  }
  for (; given < total; ++given) {
    const auto most = std::ranges::max_element(rests);
    ++shares.at(static_cast<std::size_t>(most - rests.begin()));
    *most = -1;
  }
  return shares;
}

std::string idle_words(const Summary& summary) {
  if (!summary.has_device) return "no device work recorded";
  const auto total = nearest(summary.idle_share() * 1000);
  std::string words = "device idle " + tenths(total) + "%";
  const auto shares = share_out(total, summary.idle_causes);
  std::array<std::size_t, kIdleCauses> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return shares.at(a) > shares.at(b); });
  std::string_view before = ": ";
  for (const std::size_t cause : order) {
    if (shares.at(cause) == 0) break;
    words += std::string(before) + std::string(to_string(static_cast<IdleCause>(cause))) + " " +
             tenths(shares.at(cause)) + "%";
    before = ", ";
  }
  return words;
}

std::string peak_words(const Summary& summary) {
  if (summary.pool.empty()) return "no pool memory recorded";
  const Unit unit = unit_of(summary.peak);
  const Unit of_budget = unit_of(summary.budget);
  std::string words = "peak " + amount(summary.peak, unit);
  if (summary.budget != 0 && unit.name != of_budget.name) words += unit.name;
  if (summary.budget != 0) words += " of " + format_amount(summary.budget);
  if (summary.budget == 0) words += unit.name;
  words += " at " + format_time(summary.peak_at);
  if (summary.peak_batch != 0) words += ", in batch " + std::to_string(summary.peak_batch);
  return words;
}

/// Returns warnings that the figures are incomplete.
std::string warnings(const Summary& summary) {
  std::string words;
  const auto add = [&words](const std::string& one) { words += (words.empty() ? "" : "; ") + one; };
  if (!summary.complete) add("the recording was cut off, and its last moments may be missing");
  if (summary.began_late) add("it began after the program");
  if (summary.lost != 0) add(count_of(summary.lost, "event") + " lost");
  if (summary.dropped != 0) add(count_of(summary.dropped, "record") + " of unknown kinds skipped");
  return words;
}

}  // namespace

std::string format_time(std::uint64_t nanoseconds) {
  const auto ns = static_cast<double>(nanoseconds);
  std::array<char, 48> text{};
  const auto put = [&](double value, const char* unit) {
    (void)std::snprintf(text.data(), text.size(), "%.*f %s",
                        value >= 99.95 ? 0 : (value >= 9.995 ? 1 : 2), value, unit);
    return std::string(text.data());
  };
  if (ns >= 0.9995e9) return put(ns / 1e9, "s");
  if (ns >= 0.9995e6) return put(ns / 1e6, "ms");
  if (ns >= 999.5) return put(ns / 1e3, "us");
  return std::to_string(nanoseconds) + " ns";
}

std::string format_amount(std::uint64_t bytes) {
  const Unit unit = unit_of(bytes);
  return amount(bytes, unit) + std::string(unit.name);
}

std::string format_share(double share) {
  std::array<char, 48> text{};
  (void)std::snprintf(text.data(), text.size(), "%.*f%%", share >= 0.9995 ? 0 : 1, 100 * share);
  return text.data();
}

std::string describe(const BarrierSite& site) {
  return site.site + " " + site.call + " " + std::to_string(site.count) +
         (site.count == 1 ? " time, " : " times, ") + format_time(site.idle_after) +
         " of device idle after it";
}

std::string in_words(const Summary& summary) {
  const std::string first = warnings(summary);
  const Waits stalls = summary.stalls.stalls();
  std::string words = first.empty() ? "" : first + ": ";
  words += peak_words(summary) + "; " + count_of(stalls.count, "stall") + ", " +
           format_share(summary.stalled_share) + " of the time; " + idle_words(summary) + "; ";
  if (summary.stalls.failures != 0)
    words += "out of memory " + count_of(summary.stalls.failures, "time") + "; ";
  return words + count_of(summary.lost, "event") + " lost";
}

std::vector<std::string> in_words(const std::vector<Summary>& summaries) {
  std::vector<std::string> lines;
  if (summaries.size() == 1) return {in_words(summaries.front())};
  lines.reserve(summaries.size() + 1);
  for (const Summary& one : summaries) lines.push_back(one.process + ": " + in_words(one));
  if (summaries.empty()) return lines;
  Summary all{.complete = true};
  std::uint64_t peak = 0;
  for (const Summary& one : summaries) {
    peak = add_capped(peak, one.peak);
    all.lost = add_capped(all.lost, one.lost);
    all.device_time = add_capped(all.device_time, one.device_time);
    all.idle = add_capped(all.idle, one.idle);
    all.has_device = all.has_device || one.has_device;
    all.stalls.failures += one.stalls.failures;
    const Waits stalls = one.stalls.stalls();
    all.stalls.admission.front().count += stalls.count;
    all.stalls.admission.front().total =
        add_capped(all.stalls.admission.front().total, stalls.total);
    for (std::size_t i = 0; i < kIdleCauses; ++i)
      all.idle_causes.at(i) = add_capped(all.idle_causes.at(i), one.idle_causes.at(i));
  }
  const auto cut = std::ranges::count(summaries, false, &Summary::complete);
  std::string total = std::to_string(summaries.size()) + " processes: ";
  if (cut != 0) total += std::to_string(cut) + " of them cut; ";
  total += "peaks add up to " + format_amount(peak) + "; " +
           count_of(all.stalls.stalls().count, "stall") + ", " +
           format_time(all.stalls.stalls().total) + "; " + idle_words(all) + "; " +
           count_of(all.lost, "event") + " lost";
  lines.push_back(total);
  return lines;
}

}  // namespace weir::timeline
