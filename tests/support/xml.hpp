#pragma once

// Whether a text is well-formed XML, as far as pictures need it: nested elements, unique attributes
// in double quotes, and no text that must be escaped.

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing {

/// The first error of `text`; empty if there is none.
[[nodiscard]] inline std::string xml_fault(std::string_view text) {
  const auto fault = [&](std::string_view what, std::size_t at) {
    return std::string(what) + " at " + std::to_string(at) + ": " +
           std::string(text.substr(at, 40));
  };
  const auto name_end = [&](std::size_t at) {
    while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 ||
                                text[at] == '-' || text[at] == ':')) {
      ++at;
    }
    return at;
  };
  std::vector<std::string_view> open;
  std::size_t elements = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '<') {
      const std::size_t end = std::min(text.find('<', at), text.size());
      const std::string_view words = text.substr(at, end - at);
      for (std::size_t i = 0; i < words.size(); ++i) {
        const auto c = static_cast<unsigned char>(words[i]);
        if (c == '>' || c > '~' || (c < ' ' && c != '\n')) return fault("a character", at + i);
        if (c == '&' && words.find(';', i) > i + 6) return fault("an ampersand", at + i);
      }
      const bool blank = words.find_first_not_of(" \n") == std::string_view::npos;
      if (open.empty() && !blank) return fault("text outside the document", at);
      at = end;
      continue;
    }
    if (text.substr(at, 2) == "</") {
      const std::size_t end = name_end(at + 2);
      if (open.empty() || open.back() != text.substr(at + 2, end - at - 2) || text[end] != '>') {
        return fault("an end without its beginning", at);
      }
      open.pop_back();
      at = end + 1;
      continue;
    }
    if (open.empty() && elements > 0) return fault("a second document", at);
    ++elements;
    std::size_t end = name_end(at + 1);
    if (end == at + 1) return fault("an element without a name", at);
    open.push_back(text.substr(at + 1, end - at - 1));
    std::set<std::string_view> attributes;
    while (end < text.size() && text[end] == ' ') {
      const std::size_t begin = end + 1;
      end = name_end(begin);
      if (!attributes.insert(text.substr(begin, end - begin)).second) {
        return fault("an attribute twice", begin);
      }
      if (end == begin || text.substr(end, 2) != "=\"") return fault("an attribute", begin);
      end = text.find('"', end + 2);
      if (end == std::string_view::npos) return fault("an attribute that does not end", begin);
      if (text.substr(begin, end - begin).find('<') != std::string_view::npos) {
        return fault("< in an attribute", begin);
      }
      ++end;
    }
    if (text.substr(end, 2) == "/>") {
      open.pop_back();
      at = end + 2;
    } else if (end < text.size() && text[end] == '>') {
      at = end + 1;
    } else {
      return fault("an element that does not end", end);
    }
  }
  if (!open.empty()) return "no end of " + std::string(open.back());
  return elements == 0 ? "no element" : "";
}

}  // namespace weir::testing
