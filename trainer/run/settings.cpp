#include "trainer/run/settings.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"
#include "allocator/pool_kind.hpp"
#include "kernels/blas/blas.hpp"
#include "scheduler/device/cuda.hpp"
#include "scheduler/device/device_kind.hpp"
#include "trainer/data/batches.hpp"
#include "trainer/model/weights.hpp"

namespace weir {
namespace {

/// About 10^15 elements: more than any machine has, and far below where products of sizes overflow.
constexpr std::uint64_t kMostCount = 1'000'000'000;

/// Returns `text` up to the first colon outside parentheses: the reason without the advice.
std::string_view first_clause(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == ':' && depth == 0) return text.substr(0, i);
  }
  return text;
}

/// Returns a reason for the settings line, which must not fill with advice on a machine without a
/// GPU.
std::string short_reason(const DefaultDevice& found) {
  if (!kind_of(parse_device_id(found.name)).on_host) return found.why;
  return "no GPU answers: " + std::string(first_clause(found.why));
}

}  // namespace

std::string format_setting(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::string(text.data(), end) : std::to_string(value);
}

std::uint64_t WholeNumber::operator()(std::string_view name, std::string_view text) const {
  const auto count = parse_whole(text);
  if (count && *count >= least && *count <= most) return *count;
  refuse(name, text,
         "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

std::uint64_t parse_count(std::string_view name, std::string_view text) {
  const auto count = parse_whole(text);
  if (!count || *count == 0 || *count > kMostCount) {
    refuse(name, text, "a whole number from 1 to 1000000000");
  }
  return *count;
}

double parse_number(std::string_view name, std::string_view text, std::string_view want) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) refuse(name, text, want);
  return value;
}

double parse_rate(std::string_view name, std::string_view text) {
  constexpr std::string_view kWant = "a number above zero that a float holds, such as 0.005";
  const double rate = parse_number(name, text, kWant);
  // Training computes in float: a rate that is zero or infinite there would train nothing.
  using Float = std::numeric_limits<float>;
  if (rate < double{Float::denorm_min()} || rate > double{Float::max()}) refuse(name, text, kWant);
  return rate;
}

double parse_momentum(std::string_view name, std::string_view text) {
  constexpr std::string_view kWant = "a number of at least 0 and below 1";
  const double momentum = parse_number(name, text, kWant);
  if (momentum < 0 || static_cast<float>(momentum) >= 1) refuse(name, text, kWant);
  return momentum;
}

std::uint64_t parse_seed(std::string_view name, std::string_view text) {
  const auto seed = parse_whole(text);
  if (!seed) refuse(name, text, "a whole number from 0 to 2^64-1");
  return *seed;
}

std::uint64_t parse_width_factor(std::string_view name, std::string_view text) {
  constexpr std::uint64_t kMost = 1024;
  const auto factor = parse_whole(text);
  if (!factor || *factor == 0 || *factor > kMost)
    refuse(name, text, "a whole number from 1 to 1024");
  return *factor;
}

Bytes parse_device_memory(std::string_view name, std::string_view text) {
  const auto memory = parse_bytes(text);
  if (!memory || memory->count == 0) refuse(name, text, "a size above zero such as 2GiB");
  return *memory;
}

TrainSettings TrainSettings::from_environment(const Environment& environment,
                                              Setting<std::string> device) {
  TrainSettings settings;
  settings.device = std::move(device);
  settings.pool = PoolOptions::from_environment(mxnet_context(settings.device.value), environment);
  settings.policy = PolicyOptions::from_environment(environment);
  settings.share = ShareSettings::from_environment(environment);
  return settings;
}

Bytes TrainSettings::total_memory() const {
  return device_memory.value.count != 0 ? device_memory.value : default_device_memory(device.value);
}

void TrainSettings::validate() const {
  pool.validate();
  const Bytes most = most_device_memory(device.value);
  if (device_memory.value > most) {
    refuse(device_memory.source, exact_bytes(device_memory.value),
           "at most what the device " + device.value + " has, " + format_bytes(most));
  }
  (void)resolve_budget(pool.budget.value, total_memory(), "budget (" + pool.budget.source + ")");
  if (shares()) {
    (void)share.floor_in(
        resolve_budget(pool.budget.value, total_memory(), "budget (" + pool.budget.source + ")"));
  }
  if (data != nullptr && inputs.value != InputKind::kHost) {
    throw UsageError(inputs.source + " " + std::string(to_string(inputs.value)) +
                     " needs generated batches: --data reads batches from files");
  }
  if (ring.source != "default" && inputs.value != InputKind::kRing) {
    throw UsageError(ring.source + " needs --inputs ring: " + std::string(to_string(inputs.value)) +
                     " inputs have no ring");
  }
  if (timeline.batches.source == "--timeline-batches" && timeline.file.value.empty()) {
    throw UsageError("--timeline-batches needs --timeline FILE or WEIR_TIMELINE");
  }
}

void TrainSettings::widen() {
  for (std::size_t i = 1; i + 1 < widths.size(); ++i) widths[i] *= width_factor.value;
}

void TrainSettings::use_data_defaults() {
  const auto replace = [](auto& setting, auto value) {
    if (setting.source == "default") setting.value = value;
  };
  replace(batch_size, std::uint64_t{64});
  replace(learning_rate, 0.1);
}

void TrainSettings::use_data(std::shared_ptr<const DataSet> set, Setting<std::string> directory) {
  data = std::move(set);
  data_directory = std::move(directory);
  widths = {data->train.pixels_per_image(), 256, 128, data->classes};
  if (batches.source == "default") {
    batches = {epochs.value * batches_of(data->train.count, batch_size.value), "epochs"};
  }
}

std::vector<NamedPath> TrainSettings::data_files() const {
  if (data == nullptr) return {};
  const std::string& option = data_directory.source;
  return {{option, data->train.images_file},
          {option, data->train.labels_file},
          {option, data->test.images_file},
          {option, data->test.labels_file}};
}

std::vector<SettingLine> TrainSettings::memory_lines() const {
  std::vector<SettingLine> lines{
      setting_line("device", device.value, device),
      setting_line("device-memory", exact_bytes(total_memory()), device_memory),
      setting_line("budget", exact_budget(pool.budget.value), pool.budget),
      every_policy
          ? SettingLine{"policy", "each in turn", "compare"}
          : setting_line("policy", std::string(to_string(policy.policy.value)), policy.policy)};
  // The other policies have no soft limit, so show it only if it was given.
  const bool used = every_policy || policy.policy.value == Policy::kThrottled;
  if (used || policy.run_ahead.source != "default") {
    lines.push_back(
        setting_line("run-ahead", format_run_ahead(policy.run_ahead.value), policy.run_ahead));
    if (!used) {
      lines.back().note = "not used by " + std::string(to_string(policy.policy.value));
    }
  }
  if (shares()) {
    lines.push_back(setting_line("share", share.name.value, share.name));
    lines.push_back(setting_line("share-floor", exact_budget(share.floor.value), share.floor));
  }
  lines.push_back(setting_line("pool", std::string(to_string(pool.kind.value)), pool.kind));
  for (const PoolSetting* own : kind_of_pool(pool.kind.value).settings) {
    lines.push_back({flag_of(*own), own->text(pool), own->source(pool)});
  }
  if (!pool.log.value.empty()) {
    lines.push_back(setting_line("alloc-log", pool.log.value, pool.log));
  }
  if (!timeline.file.value.empty()) {
    lines.push_back(setting_line("timeline", timeline.file.value, timeline.file));
  }
  return lines;
}

std::vector<SettingLine> TrainSettings::lines() const {
  std::vector<SettingLine> lines = memory_lines();
  const auto add = [&lines](const char* name, std::string value, const auto& setting) {
    lines.push_back(setting_line(name, std::move(value), setting));
  };
  if (data != nullptr) {
    add("data", data_directory.value, data_directory);
    lines.push_back({"model", format_widths(widths), "data"});
    if (batches.source == "epochs") add("epochs", std::to_string(epochs.value), epochs);
  } else {
    add("inputs", std::string(to_string(inputs.value)), inputs);
    if (inputs.value == InputKind::kRing) add("ring", std::to_string(ring.value), ring);
  }
  if (memory.value != StaticMemory::kNone) {
    add(memory.value == StaticMemory::kShape ? "static-shape" : "static-alloc", "1", memory);
  }
  add("width-factor", std::to_string(width_factor.value), width_factor);
  add("batches", std::to_string(batches.value), batches);
  add("batch-size", std::to_string(batch_size.value), batch_size);
  add("lr", format_setting(learning_rate.value), learning_rate);
  add("momentum", format_setting(momentum.value), momentum);
  add("seed", std::to_string(seed.value), seed);
  return lines;
}

std::string parse_device(std::string_view name, std::string_view text) {
  if (text != "auto" && !find_device(text)) refuse(name, text, allowed_devices());
  return std::string(text);
}

Setting<std::string> choose_device(const Setting<std::string>& asked) {
  if (asked.value == "auto") {
    const DefaultDevice found = default_device();
    return {found.name, asked.source + ": " + short_reason(found)};
  }
  (void)most_device_memory(asked.value);  // refuses a device that does not exist
  return asked;
}

Bytes most_device_memory(std::string_view device) {
  const DeviceId id = parse_device_id(device);
  return kind_of(id).most_memory(id.ordinal);
}

Bytes default_device_memory(std::string_view device) {
  const DeviceId id = parse_device_id(device);
  return kind_of(id).default_memory(id.ordinal);
}

void start_blas(std::string_view device) {
  if (!kind_of(parse_device_id(device)).on_host) return;
  reserve_blas_memory();
  set_blas_threads(1);  // the bits of a product depend on the number of threads
}

MxnetContext mxnet_context(std::string_view device) {
  return kind_of(parse_device_id(device)).on_host ? MxnetContext::kCpu : MxnetContext::kGpu;
}

}  // namespace weir
