#include "trainer/wide/wide_agreement.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>

#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/checkpoint/checkpoint_reader.hpp"
#include "trainer/wide/wide_checkpoint.hpp"

namespace weir {
namespace {

void require_rows(const WideSettings& settings, std::uint64_t ranks) {
  const Setting<std::uint64_t>& rows = settings.train.batch_size;
  const std::string wanted = "at least a row for each of the " + std::to_string(ranks) + " ranks";
  if (rows.value < ranks) refuse(rows.source, std::to_string(rows.value), wanted);
  if (settings.data == nullptr) return;
  const std::uint64_t left = settings.data->train.rows() % rows.value;
  if (left == 0 || left >= ranks) return;
  throw UsageError(settings.data_directory.source + ": the last batch of an epoch has " +
                   std::to_string(left) + (left == 1 ? " row" : " rows") +
                   ", but --parallel data needs " + wanted + ": give another --batch-size");
}

void require_columns(const WideSettings& settings, std::uint64_t ranks) {
  const std::vector<std::size_t> widths = settings.widths();
  if (std::min(widths.front(), widths.back()) < ranks) {
    throw UsageError("--parallel model needs an input and an output for each of the " +
                     std::to_string(ranks) + " ranks: this network has " +
                     std::to_string(widths.front()) + " and " + std::to_string(widths.back()));
  }
  if (!settings.checkpoint.value.empty()) {
    throw UsageError(settings.checkpoint.source +
                     " does not work with --parallel model, where no rank has all weights: use "
                     "--parallel data");
  }
}

/// Returns the file's last checksum, which is of all its contents.
std::string last_checksum(const std::string& file) {
  std::array<char, kChecksumBytes> bytes{};
  std::ifstream in(file, std::ios::binary);
  in.seekg(-static_cast<std::streamoff>(bytes.size()), std::ios::end);
  in.read(bytes.data(), bytes.size());
  return std::to_string(std::bit_cast<std::uint32_t>(bytes));
}

}  // namespace

void require_ranks(const WideSettings& settings, int ranks) {
  if (!settings.parallel.value) {
    if (ranks == 1) return;
    throw UsageError(
        std::to_string(ranks) +
        " ranks were started: --parallel data or --parallel model says what they share");
  }
  const auto count = static_cast<std::uint64_t>(ranks);
  if (*settings.parallel.value == Parallel::kData) return require_rows(settings, count);
  require_columns(settings, count);
}

std::vector<AgreedField> agreed_fields(const WideSettings& settings) {
  std::vector<AgreedField> fields;
  for (const Figure& figure : checkpoint_settings(settings)) {
    std::string name = figure.name == "data" ? "the " : "--";
    fields.push_back({name.append(figure.name), figure.value});
  }
  const auto number = [&fields](const char* name, std::uint64_t value) {
    fields.push_back({name, std::to_string(value)});
  };
  fields.push_back({"--parallel", std::string(to_string(settings.parallel.value.value()))});
  number("--bucket", settings.bucket.value.count);
  number("--batches", settings.train.batches.value);
  number("the rows to test on", settings.test_rows());
  if (settings.data != nullptr) {
    fields.push_back({"the data to test on", describe_rows(settings.data->test)});
  }
  if (settings.resume) {
    const CheckpointReader saved(settings.checkpoint.source, settings.checkpoint.value);
    number("the checkpoint's batch", saved.number(kBatchPosition));
    fields.push_back({"the checkpoint's checksum", last_checksum(settings.checkpoint.value)});
  }
  return fields;
}

WideSplit split_of(const WideSettings& settings, const Communicator& ranks) {
  return {.widths = settings.widths(),
          .loss = settings.loss.value,
          .rows = settings.train.batch_size.value,
          .parallel = settings.parallel.value.value(),
          .bucket = settings.bucket.value,
          .rank = ranks.rank(),
          .ranks = ranks.size()};
}

}  // namespace weir
