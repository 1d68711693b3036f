// TOML as text. Not installed. toml++ 3.3 prints it too, but where an array holds a number between
// -1 and 1 it casts a negative number to an unsigned one, which is undefined.
#pragma once

#include <toml++/toml.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>
#include <string>
#include <string_view>

#include "affpcl/base/params.h"

namespace affpcl {

// Anything but a list and a table. A number has no more digits than tell it apart.
inline std::string toml_scalar(const toml::node& node) {
  if (const auto* x = node.as_floating_point(); x != nullptr && std::isfinite(x->get())) {
    const std::string digits = to_text(x->get());
    return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
  }
  std::ostringstream out;
  out << toml::toml_formatter(node, toml::format_flags::allow_unicode_strings);
  return out.str();
}

inline std::string toml_key(std::string_view key) {
  const auto bare = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  if (!key.empty() && std::all_of(key.begin(), key.end(), bare)) return std::string(key);
  return toml_scalar(toml::value<std::string>(std::string(key)));
}

// A value on one line.
inline std::string toml_value(const toml::node& node) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& item : *list) add(toml_value(item));
    return "[" + text + "]";
  }
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table) add(toml_key(key.str()) + " = " + toml_value(value));
    return "{" + text + "}";
  }
  return toml_scalar(node);
}

// What has a header [path], and what has several [[path]].
inline bool is_section(const toml::node& node) {
  return node.is_table() && !node.as_table()->is_inline();
}
inline bool is_section_list(const toml::node& node) {
  return node.is_array_of_tables() && is_section(*node.as_array()->get(0));
}

// A table as a document: its values, then its sections, whose headers begin with `path`.
inline std::string toml_document(const toml::table& table, const std::string& path = {}) {
  std::string text;
  for (const auto& [key, node] : table)
    if (!is_section(node) && !is_section_list(node))
      text += toml_key(key.str()) + " = " + toml_value(node) + "\n";
  const auto section = [&](const std::string& header, const toml::node& node,
                           const std::string& at) {
    text += (text.empty() ? "" : "\n") + header + "\n" + toml_document(*node.as_table(), at);
  };
  for (const auto& [key, node] : table) {
    const std::string at = (path.empty() ? "" : path + ".") + toml_key(key.str());
    if (is_section(node)) section("[" + at + "]", node, at);
    if (is_section_list(node))
      for (const toml::node& item : *node.as_array()) section("[[" + at + "]]", item, at);
  }
  return text;
}

}  // namespace affpcl
