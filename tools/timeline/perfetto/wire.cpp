#include "tools/timeline/perfetto/wire.hpp"

namespace weir::timeline::wire {
namespace {

std::optional<std::uint64_t> take_fixed(std::string_view& in, std::size_t size) noexcept {
  if (in.size() < size) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<std::uint8_t>(in[i])} << (8 * i);
  }
  in.remove_prefix(size);
  return value;
}

}  // namespace

std::optional<Field> take_field(std::string_view& in) noexcept {
  const std::optional<std::uint64_t> key = take_varint(in);
  if (!key || *key >> 3U > 0x1FFFFFFF || *key >> 3U == 0) return std::nullopt;
  Field field{.number = static_cast<std::uint32_t>(*key >> 3U),
              .type = static_cast<Type>(*key & 7U)};
  std::optional<std::uint64_t> value;
  switch (field.type) {
    case Type::kVarint:
    case Type::kBytes:
      value = take_varint(in);
      break;
    case Type::kFixed64:
      value = take_fixed(in, 8);
      break;
    case Type::kFixed32:
      value = take_fixed(in, 4);
      break;
  }
  if (!value) return std::nullopt;
  if (field.type == Type::kBytes) {
    if (*value > in.size()) return std::nullopt;
    field.bytes = in.substr(0, *value);
    in.remove_prefix(*value);
  } else {
    field.value = *value;
  }
  return field;
}

}  // namespace weir::timeline::wire
