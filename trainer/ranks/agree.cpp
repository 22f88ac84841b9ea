#include "trainer/ranks/agree.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/version.hpp"

namespace weir {
namespace {

/// Each text, and a zero behind it.
std::string pack(const std::vector<AgreedField>& fields) {
  std::string packed;
  for (const AgreedField& field : fields) {
    packed.append(field.name).append(1, '\0');
    packed.append(field.value).append(1, '\0');
  }
  return packed;
}

std::vector<AgreedField> unpack(const std::string& packed) {
  std::vector<AgreedField> fields;
  for (std::size_t at = 0; at < packed.size();) {
    AgreedField& field = fields.emplace_back();
    for (std::string* text : {&field.name, &field.value}) {
      *text = packed.c_str() + std::min(at, packed.size());
      at += text->size() + 1;
    }
  }
  return fields;
}

std::optional<std::string> value_of(const std::vector<AgreedField>& fields,
                                    const std::string& name) {
  const auto found = std::ranges::find(fields, name, &AgreedField::name);
  if (found == fields.end()) return std::nullopt;
  return found->value;
}

/// Returns `rank 2 has` or `ranks 0, 1 have`.
std::string owners(const std::vector<std::size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  }
  return text + (ranks.size() == 1 ? " has " : " have ");
}

/// Returns the line for this field, or nothing if all ranks have the same value.
std::string difference_in(const std::string& name,
                          const std::vector<std::vector<AgreedField>>& fields) {
  std::vector<std::pair<std::optional<std::string>, std::vector<std::size_t>>> values;
  for (std::size_t rank = 0; rank < fields.size(); ++rank) {
    const std::optional<std::string> value = value_of(fields[rank], name);
    const auto same = [&](const auto& entry) { return entry.first == value; };
    auto found = std::ranges::find_if(values, same);
    if (found == values.end()) found = values.insert(found, {value, {}});
    found->second.push_back(rank);
  }
  if (values.size() == 1) return {};
  std::string line = "the ranks differ in " + name + ": ";
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [value, ranks] = values[i];
    line += (i == 0 ? "" : "; ") + owners(ranks) + (value ? "'" + *value + "'" : "none");
  }
  return line;
}

/// Returns each rank's text.
std::vector<std::string> gather_texts(Communicator& ranks, std::string mine) {
  const auto count = static_cast<std::size_t>(ranks.size());
  const std::uint64_t size = mine.size();
  std::vector<std::uint64_t> sizes(count);
  ranks.gather_all(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)));
  // Padded to the longest, since every rank's part has the same size.
  const std::size_t longest = std::ranges::max(sizes);
  std::vector<std::string> texts(count);
  if (longest == 0) return texts;
  mine.resize(longest);
  std::string all(longest * count, '\0');
  ranks.gather_all(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  for (std::size_t rank = 0; rank < count; ++rank) {
    texts[rank] = all.substr(rank * longest, sizes[rank]);
  }
  return texts;
}

}  // namespace

std::string describe_difference(const std::vector<std::vector<AgreedField>>& fields) {
  for (const std::vector<AgreedField>& of_rank : fields) {
    for (const AgreedField& field : of_rank) {
      if (std::string line = difference_in(field.name, fields); !line.empty()) return line;
    }
  }
  return {};
}

void require_none_refused(Communicator& ranks, const std::string& refusal) {
  const std::vector<std::string> all = gather_texts(ranks, refusal);
  const auto first =
      std::ranges::find_if(all, [](const std::string& text) { return !text.empty(); });
  if (first == all.end()) return;
  ranks.finish();  // together: nobody takes the others' end for a death
  const bool same = std::ranges::count(all, *first) == std::ranges::ssize(all);
  const auto rank = first - all.begin();
  throw UsageError(same ? *first : "rank " + std::to_string(rank) + ": " + *first);
}

void agree(Communicator& ranks, std::vector<AgreedField> fields) {
  fields.insert(fields.begin(), {"the version of weir", std::string(kVersion)});
  std::vector<std::vector<AgreedField>> of_ranks;
  for (const std::string& packed : gather_texts(ranks, pack(fields))) {
    of_ranks.push_back(unpack(packed));
  }
  const std::string difference = describe_difference(of_ranks);
  if (difference.empty()) return;
  ranks.finish();  // as above
  throw UsageError(difference);
}

}  // namespace weir
