#include "affpcl/base/error.h"

#include "affpcl/base/utf8.h"

namespace affpcl {
namespace {

std::string joined(const BadInput::Fields& f) {
  std::string all;
  if (!f.place.empty()) all += f.place + ": ";
  if (!f.option.empty()) all += '`' + f.option + "` ";
  all += f.what;
  if (!f.remedy.empty()) all += "; " + f.remedy;
  return printable(all);
}

// Keys are lower-case words: "time", "step_size". Anything else between backticks is left alone.
bool is_key(std::string_view text) {
  if (text.empty() || text.size() > 40) return false;
  for (const char c : text)
    if ((c < 'a' || c > 'z') && c != '_') return false;
  return true;
}

std::string spelled(std::string_view key, std::string_view value, OptionStyle style) {
  const std::string of(key), is(value);
  if (style == OptionStyle::kPython) return is.empty() ? of + "=" : of + "='" + is + "'";
  if (style == OptionStyle::kKey) return is.empty() ? of : of + " = " + is;
  std::string option = "--";
  for (const char c : key) option += c == '_' ? '-' : c;
  return is.empty() ? option : option + " " + is;
}

}  // namespace

std::string spell_options(std::string_view text, OptionStyle style) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = text.find('`'),
                      close = open == text.npos ? open : text.find('`', open + 1);
    if (close == text.npos) break;
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    const std::size_t space = inside.find(' ');
    const std::string_view key = inside.substr(0, space);
    if (!is_key(key)) {  // the second backtick may open a key
      out += text.substr(0, close);
      text.remove_prefix(close);
      continue;
    }
    out += text.substr(0, open);
    out += spelled(key, space == inside.npos ? "" : inside.substr(space + 1), style);
    text.remove_prefix(close + 1);
  }
  return out + std::string(text);
}

std::vector<std::string> spell_options(std::vector<std::string> texts, OptionStyle style) {
  for (std::string& text : texts) text = spell_options(text, style);
  return texts;
}

BadInput::BadInput(const Fields& fields)
    : std::runtime_error(spell_options(joined(fields), OptionStyle::kKey)), fields_(fields) {}

std::string BadInput::sentence(OptionStyle style) const {
  return spell_options(joined(fields_), style);
}

std::string BadInput::marked() const { return joined(fields_); }

}  // namespace affpcl
