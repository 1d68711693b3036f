#include "affpcl/data/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "affpcl/base/error.h"
#include "affpcl/data/columns.h"
#include "affpcl/data/field.h"
#include "affpcl/data/input_file.h"

namespace affpcl {
namespace {

constexpr std::size_t kLongestHeader = 10'000'000;
constexpr int kDeepest = 8;

// A header is a Python literal: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }.
struct Literal {
  enum class Type { kText, kNumber, kBool, kList, kDict } type = Type::kNumber;
  std::string text;
  std::uint64_t number = 0;    // of a bool: 0 or 1
  std::vector<Literal> items;  // of a dict: key, value, key, value, …

  const Literal* at(std::string_view key) const {
    for (std::size_t i = 0; type == Type::kDict && i + 1 < items.size(); i += 2)
      if (items[i].text == key) return &items[i + 1];
    return nullptr;
  }
};

class LiteralParser {
 public:
  LiteralParser(const std::string& where, std::string_view text) : where_(where), rest_(text) {}

  Literal parse(int depth = 0) {
    skip_spaces();
    if (depth > kDeepest || rest_.empty()) fail();
    if (rest_[0] == '{') return items(Literal::Type::kDict, '}', depth);
    if (rest_[0] == '[') return items(Literal::Type::kList, ']', depth);
    if (rest_[0] == '(') return items(Literal::Type::kList, ')', depth);
    if (rest_[0] == '\'' || rest_[0] == '"') return text();
    for (const auto& [word, value] : {std::pair{"True", 1u}, std::pair{"False", 0u}})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(std::string_view(word).size());
        return {.type = Literal::Type::kBool, .text = {}, .number = value, .items = {}};
      }
    return number();
  }

 private:
  Literal items(Literal::Type type, char close, int depth) {
    Literal list{.type = type, .text = {}, .number = 0, .items = {}};
    rest_.remove_prefix(1);
    for (;;) {
      skip_spaces();
      if (take(close)) return list;
      list.items.push_back(parse(depth + 1));
      skip_spaces();
      if (type == Literal::Type::kDict) {
        if (!take(':')) fail();
        list.items.push_back(parse(depth + 1));
        skip_spaces();
      }
      if (take(',')) continue;
      if (!take(close)) fail();
      return list;
    }
  }

  Literal text() {
    Literal value{.type = Literal::Type::kText, .text = {}, .number = 0, .items = {}};
    const char quote = rest_[0];
    rest_.remove_prefix(1);
    while (!rest_.empty() && rest_[0] != quote) {
      if (rest_[0] == '\\') rest_.remove_prefix(1);  // \' and \\; others do not occur in names
      if (rest_.empty()) break;
      value.text += rest_[0];
      rest_.remove_prefix(1);
    }
    if (!take(quote)) fail();
    return value;
  }

  Literal number() {
    Literal value;
    const auto [stop, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value.number);
    if (error != std::errc()) fail();
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
    take('L');  // Python 2 wrote long integers so
    return value;
  }

  void skip_spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }

  bool take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  [[noreturn]] void fail() const {
    throw BadInput(
        fmt::format("{} is damaged: its header is no NumPy header at '{}'", where_, shown(rest_)));
  }

  const std::string& where_;
  std::string_view rest_;
};

// "<f8" and the like, without name and offset.
BinaryField type_of(const std::string& where, const Literal& type) {
  BinaryField f;
  const std::string& t = type.text;
  const char* const end = t.data() + t.size();
  std::size_t count = 0;
  const bool good = type.type == Literal::Type::kText && t.size() >= 3 &&
                    std::string_view("<>|=").find(t[0]) != std::string_view::npos &&
                    std::from_chars(t.data() + 2, end, count).ptr == end && count < 1'000'000'000;
  if (t.find('O') != std::string::npos)
    throw BadInput(fmt::format("{} holds Python objects; save it with a dtype of numbers", where));
  if (good) {
    f.kind = t[1];
    f.size = t[1] == 'U' ? 4 * count : count;
    f.big_endian = t[0] == '>';
  }
  const bool padding = good && f.kind == 'V';
  if (!good || !(padding || is_readable(f)))
    throw BadInput(
        fmt::format("{} has the type '{}'; f4, f8, i1 to i8, u1 to u8, b1, U and S can be read",
                    where, shown(t)));
  return f;
}

// [('a', '<f8'), ('b', '<U5')]: a column each; unnamed void fields are padding.
void add_fields(const std::string& where, const Literal& list, BinaryLayout& layout) {
  for (const Literal& item : list.items) {
    const bool pair = item.type == Literal::Type::kList && item.items.size() == 2 &&
                      item.items[0].type == Literal::Type::kText;
    if (!pair)
      throw BadInput(fmt::format(
          "{} has a field of several values or without a plain name; only plain fields can be read",
          where));
    BinaryField f = type_of(where, item.items[1]);
    f.name = item.items[0].text;
    f.offset = layout.row_bytes;
    layout.row_bytes += f.size;
    if (f.kind == 'V' && !f.name.empty())
      throw BadInput(fmt::format("{}: the field '{}' holds raw bytes, not numbers or texts", where,
                                 shown(f.name)));
    if (f.kind != 'V') layout.fields.push_back(std::move(f));
  }
}

// The text of the header, and how many bytes it took from the front of the file.
std::pair<std::string, std::int64_t> header_text(
    const std::string& where, FunctionRef<std::size_t(char* to, std::size_t bytes)> read) {
  const auto bytes = [&](std::size_t count) {
    std::string b(count, '\0');
    if (read(b.data(), count) != count)
      throw BadInput(fmt::format("{} is cut short: it ends inside its header", where));
    return b;
  };
  char magic[6] = {};
  if (read(magic, 6) != 6 || std::string_view(magic, 6) != kNpyMagic)
    throw BadInput(fmt::format("{} does not begin as a NumPy file does", where));
  const int version = bytes(2)[0];
  if (version < 1 || version > 3)
    throw BadInput(
        fmt::format("{} is of version {} of the format; 1 to 3 can be read", where, version));
  const std::string length = bytes(version == 1 ? 2 : 4);
  std::size_t size = 0;
  for (std::size_t i = length.size(); i-- > 0;)
    size = size << 8 | static_cast<unsigned char>(length[i]);
  if (size > kLongestHeader)
    throw BadInput(fmt::format("{} is damaged: a header of {} bytes", where, size));
  return {bytes(size), static_cast<std::int64_t>(8 + length.size() + size)};
}

}  // namespace

BinaryLayout npy_layout(const std::string& where, const std::string& name,
                        const std::string& prefix, std::int64_t bytes,
                        FunctionRef<std::size_t(char* to, std::size_t bytes)> read) {
  const auto [text, used] = header_text(where, read);
  const Literal header = LiteralParser(where, text).parse();
  const Literal* const descr = header.at("descr");
  const Literal* const fortran = header.at("fortran_order");
  const Literal* const shape = header.at("shape");
  const bool good = descr != nullptr && fortran != nullptr && shape != nullptr &&
                    fortran->type == Literal::Type::kBool && shape->type == Literal::Type::kList;
  if (!good)
    throw BadInput(fmt::format(
        "{} is damaged: its header does not say descr, fortran_order and shape", where));
  const bool structured = descr->type == Literal::Type::kList;
  const std::size_t dims = shape->items.size();
  if (dims != 1 && (dims != 2 || structured))
    throw BadInput(
        fmt::format("{} has {} dimensions{}; rows, or rows and columns of one type, can be read",
                    where, dims, structured ? " of records" : ""));
  BinaryLayout layout;
  layout.rows = shape->items[0].number;
  layout.by_column = dims == 2 && fortran->number == 1;
  if (structured) {
    add_fields(where, *descr, layout);
  } else {
    const std::size_t columns = dims == 1 ? 1 : shape->items[1].number;
    refuse_too_many_columns(where, columns);
    BinaryField f = type_of(where, *descr);
    for (std::size_t c = 0; c < columns; ++c) {
      f.name = dims == 1 ? name : fmt::format("{}{}", prefix, c);
      f.offset = layout.row_bytes;
      layout.row_bytes += f.size;
      layout.fields.push_back(f);
    }
  }
  if (layout.fields.empty() || layout.fields[0].kind == 'V')
    throw BadInput(fmt::format("{} has no column", where));
  refuse_short(where, layout, bytes - used);
  return layout;
}

namespace {

BinaryLayout layout_of(InputFile& file) {
  const std::string stem = std::filesystem::path(file.path()).stem().string();
  return npy_layout(file.path(), stem, "x", file.size(),
                    [&](char* to, std::size_t bytes) { return file.read(to, bytes); });
}

}  // namespace

std::vector<std::string> npy_header(const std::string& path) {
  InputFile file(path);
  return field_names(layout_of(file));
}

DataTable read_npy(const std::string& path, const TableOptions& options) {
  InputFile file(path);
  return read_binary(file, layout_of(file), options.columns);
}

}  // namespace affpcl
