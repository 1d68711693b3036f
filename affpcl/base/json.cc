#include "affpcl/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

namespace affpcl {

// ---- the value ----

Json::Json(std::initializer_list<JsonField> members) : Json(object()) {
  as_.object->reserve(members.size());
  for (const JsonField& m : members)
    as_.object->push_back({std::string(m.key), std::move(m.value)});
}

Json Json::object() {
  Json json;
  json.as_.object = new Object;
  json.kind_ = Kind::kObject;
  return json;
}

Json::Json(const Json& other) : as_(other.as_) {
  if (other.is_string()) as_.string = new std::string(*other.as_.string);
  if (other.is_array()) as_.array = new Array(*other.as_.array);
  if (other.is_object()) as_.object = new Object(*other.as_.object);
  kind_ = other.kind_;
}

void Json::destroy() noexcept {
  if (is_string()) delete as_.string;
  if (is_array()) delete as_.array;
  if (is_object()) delete as_.object;
}

std::size_t Json::size() const {
  return is_array() ? as_.array->size() : is_object() ? as_.object->size() : 0;
}

const Json::Array& Json::elements() const { return as_array({}); }

Json::Array& Json::elements() {
  if (is_null()) *this = array();
  return const_cast<Array&>(as_array({}));
}

const Json::Object& Json::members() const {
  if (!is_object()) refuse({}, "an object");
  return *as_.object;
}

Json::Object& Json::members() {
  if (is_null()) *this = object();
  return const_cast<Object&>(std::as_const(*this).members());
}

const std::string& Json::string() const { return as_string({}); }

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const JsonMember& m : *as_.object)
    if (m.key == key) return &m.value;
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  const Json* found = find(key);
  if (found == nullptr) throw BadInput(fmt::format("'{}' is missing", key));
  return *found;
}

Json& Json::operator[](std::string_view key) {
  if (Json* found = find(key)) return *found;
  return members().emplace_back(JsonMember{std::string(key), {}}).value;
}

void Json::erase(std::string_view key) {
  std::erase_if(members(), [&](const JsonMember& m) { return m.key == key; });
}

bool Json::equals(const Json& other) const {
  if (is_integer() && other.is_integer())
    return kind_ == other.kind_ && as_.large == other.as_.large;
  if (is_number() && other.is_number()) return as_double({}) == other.as_double({});
  if (kind_ != other.kind_ || size() != other.size()) return false;
  if (is_bool()) return as_.truth == other.as_.truth;
  if (is_string()) return *as_.string == *other.as_.string;
  if (is_array()) return *as_.array == *other.as_.array;
  const auto is_there = [&](const JsonMember& m) {
    const Json* same = other.find(m.key);
    return same != nullptr && m.value == *same;
  };
  return is_null() || std::all_of(as_.object->begin(), as_.object->end(), is_there);
}

// ---- as another type ----

std::string Json::Place::text() const {
  return list == nullptr ? std::string(key) : fmt::format("{}[{}]", list->text(), index);
}

std::string Json::description() const {
  constexpr std::size_t kMost = 40;
  if (is_array()) return fmt::format("a list of {}", size());
  if (is_object()) return "an object";
  const std::string text = print_json(*this, {.ascii = true});
  return text.size() <= kMost ? text : text.substr(0, kMost - 4) + "...\"";
}

void Json::refuse(const Place& place, const std::string& wanted) const {
  const std::string where = place.text();
  throw BadInput(fmt::format("{} is {}, not {}",
                             where.empty() ? "a value" : fmt::format("'{}'", where), description(),
                             wanted));
}

bool Json::as_bool(const Place& place) const {
  if (!is_bool()) refuse(place, "true or false");
  return as_.truth;
}

std::int64_t Json::as_integer(const Place& place, std::int64_t lo, std::int64_t hi) const {
  std::int64_t value = as_.integer;
  bool whole = kind_ == Kind::kInteger;
  if (kind_ == Kind::kDouble && as_.real == std::trunc(as_.real) && std::abs(as_.real) < 0x1p63)
    whole = true, value = static_cast<std::int64_t>(as_.real);
  if (!whole || value < lo || value > hi)
    refuse(place, fmt::format("a whole number from {} to {}", lo, hi));
  return value;
}

std::uint64_t Json::as_unsigned(const Place& place, std::uint64_t hi) const {
  if (kind_ == Kind::kUnsigned && as_.large <= hi) return as_.large;
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (kind_ == Kind::kUnsigned) refuse(place, fmt::format("a whole number from 0 to {}", hi));
  return static_cast<std::uint64_t>(
      as_integer(place, 0, static_cast<std::int64_t>(std::min(hi, kMost))));
}

double Json::as_double(const Place& place) const {
  if (kind_ == Kind::kInteger) return static_cast<double>(as_.integer);
  if (kind_ == Kind::kUnsigned) return static_cast<double>(as_.large);
  if (kind_ != Kind::kDouble) refuse(place, "a number");
  return as_.real;
}

const std::string& Json::as_string(const Place& place) const {
  if (!is_string()) refuse(place, "a string");
  return *as_.string;
}

const Json::Array& Json::as_array(const Place& place) const {
  if (!is_array()) refuse(place, "a list");
  return *as_.array;
}

// ---- reading ----

namespace {

// The characters of a text, whole or in parts.
class Source {
 public:
  using Read = FunctionRef<std::size_t(char*, std::size_t)>;

  Source(std::string_view text, const JsonLimits& limits)
      : at_(text.data()), end_(at_ + text.size()), text_(text), limits_(limits) {
    if (text.size() > limits.bytes) too_long();
  }
  Source(const Read& read, const JsonLimits& limits)
      : read_(&read), limits_(limits), part_(1 << 16) {
    at_ = end_ = part_.data();
  }

  const JsonLimits& limits() const { return limits_; }
  bool more() { return at_ != end_ || refilled(); }
  char now() const { return *at_; }
  void next() { ++at_; }
  std::size_t taken() const { return before_ + static_cast<std::size_t>(at_ - begin()); }

  // `number` counts the characters up to and with the one that is wrong.
  [[noreturn]] void fail(std::size_t number, const std::string& what) const {
    if (read_ != nullptr) throw BadJson(fmt::format("byte {}: {}", number, what));
    const std::string_view good = text_.substr(0, number - 1);
    const std::size_t line = good.rfind('\n');  // its end; npos + 1 is 0
    throw BadJson(fmt::format("line {}, column {}: {}",
                              1 + std::count(good.begin(), good.end(), '\n'), number - (line + 1),
                              what));
  }

 private:
  const char* begin() const { return read_ != nullptr ? part_.data() : text_.data(); }
  bool refilled() {
    if (read_ == nullptr) return false;
    before_ = taken();
    const std::size_t got = (*read_)(part_.data(), part_.size());
    at_ = part_.data();
    end_ = at_ + got;
    if (before_ + got > limits_.bytes) too_long();
    return got > 0;
  }
  [[noreturn]] void too_long() const {
    throw BadJson(fmt::format("it is longer than {} bytes", limits_.bytes));
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::string_view text_;
  const Read* read_ = nullptr;
  JsonLimits limits_;
  std::vector<char> part_;
  std::size_t before_ = 0;  // this part
};

// How the library walks over a source; the end is an iterator of none.
struct Cursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;
  Source* source = nullptr;
  char operator*() const { return source->now(); }
  Cursor& operator++() {
    source->next();
    return *this;
  }
  bool operator!=(const Cursor&) const { return source->more(); }
  bool operator==(const Cursor&) const { return !source->more(); }
};

// Passes on what the library meets, within the limits.
class Sax {
 public:
  using Library = nlohmann::json;
  Sax(const Source& source, JsonEvents& events) : source_(source), events_(events) {}

  bool null() { return events_.value(nullptr); }
  bool boolean(bool value) { return events_.value(value); }
  bool number_integer(std::int64_t value) { return events_.value(value); }
  bool number_unsigned(std::uint64_t value) { return events_.value(value); }
  bool number_float(double value, const std::string&) { return events_.value(value); }
  // A copy: the library's string has room for the longest so far.
  bool string(const std::string& value) { return events_.value(value); }
  bool binary(Library::binary_t&) { return false; }  // not in a text
  bool key(const std::string& name) { return events_.key(name); }
  bool start_object(std::size_t) { return deeper() && events_.begin_object(); }
  bool start_array(std::size_t) { return deeper() && events_.begin_array(); }
  bool end_object() { return --depth_, events_.end_object(); }
  bool end_array() { return --depth_, events_.end_array(); }

  bool parse_error(std::size_t number, const std::string& token, const Library::exception& e) {
    if (e.id == 406)
      source_.fail(number, fmt::format("'{}' is too large for a double",
                                       token.size() <= 40 ? token : token.substr(0, 37) + "..."));
    // "… syntax error while parsing value - unexpected ']'; expected a literal", or
    // "… - invalid literal; last read: 'nul'", of whatever length.
    std::string what = e.what();
    what.resize(std::min(what.find("; last read: "), what.size()));
    const std::size_t dash = what.find(" - ");
    source_.fail(number, dash == std::string::npos ? what : what.substr(dash + 3));
  }

 private:
  bool deeper() {
    if (++depth_ > source_.limits().depth)
      source_.fail(source_.taken(), fmt::format("arrays and objects are nested more than {} deep",
                                                source_.limits().depth));
    return true;
  }

  const Source& source_;
  JsonEvents& events_;
  std::size_t depth_ = 0;
};

// Keeps what it meets on two stacks, so that every list and object is made once, of its size.
class Builder final : public JsonEvents {
 public:
  explicit Builder(const Source& source) : source_(source) {}

  bool value(Json value) override { return values_.push_back(std::move(value)), true; }
  bool key(const std::string& name) override { return keys_.push_back(name), true; }
  bool begin_object() override { return begins_.push_back(values_.size()), true; }
  bool begin_array() override { return begins_.push_back(values_.size()), true; }
  bool end_array() override {
    const auto first = begin();
    return replace(Json::Array(std::move_iterator(first), std::move_iterator(values_.end())));
  }
  bool end_object() override {
    const auto first = begin();
    const auto key = keys_.end() - (values_.end() - first);
    Json json = Json::object();
    json.members().reserve(static_cast<std::size_t>(values_.end() - first));
    for (auto value = first; value != values_.end(); ++value)
      json.members().push_back({std::move(key[value - first]), std::move(*value)});
    keys_.erase(key, keys_.end());
    refuse_same_key_twice(json.members());
    return replace(std::move(json));
  }
  Json take() { return std::move(values_.at(0)); }

 private:
  std::vector<Json>::iterator begin() {
    return values_.begin() + static_cast<std::ptrdiff_t>(begins_.back());
  }
  // Replaces the values since the last beginning by the one made of them.
  bool replace(Json whole) {
    values_.resize(begins_.back());
    begins_.pop_back();
    return value(std::move(whole));
  }

  void refuse_same_key_twice(const Json::Object& members) {
    names_.clear();
    for (const JsonMember& m : members) names_.push_back(m.key);
    std::sort(names_.begin(), names_.end());
    if (const auto twice = std::adjacent_find(names_.begin(), names_.end()); twice != names_.end())
      source_.fail(source_.taken(), fmt::format("the object that ends here has the key {} twice",
                                                Json(*twice).description()));
  }

  const Source& source_;
  std::vector<Json> values_;
  std::vector<std::string> keys_;
  std::vector<std::size_t> begins_;  // of open lists and objects, among values_
  std::vector<std::string_view> names_;
};

void parse(Source& source, JsonEvents& events) {
  Sax sax(source, events);
  Sax::Library::sax_parse(Cursor{&source}, Cursor{}, &sax);
}

}  // namespace

Json parse_json(std::string_view text, const JsonLimits& limits) {
  Source source(text, limits);
  Builder builder(source);
  parse(source, builder);
  return builder.take();
}

void parse_json(FunctionRef<std::size_t(char*, std::size_t)> read, JsonEvents& events,
                const JsonLimits& limits) {
  Source source(read, limits);
  parse(source, events);
}

// ---- printing ----

class JsonPrinter {
 public:
  explicit JsonPrinter(const JsonStyle& style) : style_(style) {}

  void print(const Json& json, std::size_t level, int indent) {
    if (json.is_structured() && !json.empty()) {
      const bool flat = style_.flat_lists && json.is_array() &&
                        std::none_of(json.elements().begin(), json.elements().end(),
                                     [](const Json& e) { return e.is_structured(); });
      structure(json, level, flat ? -1 : indent);
      return;
    }
    scalar(json);
  }
  std::string take() { return std::move(out_); }

 private:
  void structure(const Json& json, std::size_t level, int indent) {
    char separator = json.is_array() ? '[' : '{';
    const auto item = [&](const Json& value, const std::string* key) {
      out_ += std::exchange(separator, ',');
      new_line(level + 1, indent);
      if (key != nullptr) string(*key), out_ += indent < 0 ? ":" : ": ";
      print(value, level + 1, indent);
    };
    if (json.is_array())
      for (const Json& e : *json.as_.array) item(e, nullptr);
    else
      for (const JsonMember& m : *json.as_.object) item(m.value, &m.key);
    new_line(level, indent);
    out_ += json.is_array() ? ']' : '}';
  }

  void scalar(const Json& json) {
    char buffer[64];
    char* end = buffer;
    switch (json.kind_) {
      case Json::Kind::kNull:
        out_ += "null";
        break;
      case Json::Kind::kBool:
        out_ += json.as_.truth ? "true" : "false";
        break;
      case Json::Kind::kInteger:
        end = std::to_chars(buffer, std::end(buffer), json.as_.integer).ptr;
        break;
      case Json::Kind::kUnsigned:
        end = std::to_chars(buffer, std::end(buffer), json.as_.large).ptr;
        break;
      case Json::Kind::kDouble:
        if (std::isfinite(json.as_.real))  // the library's digits, not always std::to_chars'
          end = nlohmann::detail::to_chars(buffer, std::end(buffer), json.as_.real);
        else
          out_ += "null";
        break;
      case Json::Kind::kString:
        string(*json.as_.string);
        break;
      case Json::Kind::kArray:
        out_ += "[]";
        break;
      case Json::Kind::kObject:
        out_ += "{}";
        break;
    }
    out_.append(buffer, end);
  }

  void string(const std::string& text) {
    const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
    if (std::all_of(text.begin(), text.end(), plain)) {
      out_.append(1, '"').append(text).append(1, '"');
      return;
    }
    using Errors = nlohmann::json::error_handler_t;
    const nlohmann::json one(text);
    try {
      out_ += one.dump(-1, ' ', style_.ascii, style_.ascii ? Errors::replace : Errors::strict);
    } catch (const nlohmann::json::type_error&) {
      throw BadInput(
          fmt::format("the text {} is not UTF-8", one.dump(-1, ' ', true, Errors::replace)));
    }
  }

  void new_line(std::size_t level, int indent) {
    if (indent >= 0) out_.append(1, '\n').append(level * static_cast<std::size_t>(indent), ' ');
  }

  JsonStyle style_;
  std::string out_;
};

std::string print_json(const Json& json, const JsonStyle& style) {
  JsonPrinter printer(style);
  printer.print(json, 0, style.indent);
  return printer.take();
}

}  // namespace affpcl
