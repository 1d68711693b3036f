// JSON: a value, and its reading and printing with bounds. json.cc is the one place that includes
// the JSON library.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/base/function_ref.h"

namespace affpcl {

struct JsonField;
struct JsonMember;

// Null, a truth value, a number, a string, an array of values, or an object, whose members keep
// their order. Whole numbers from -2^63 to 2^64-1 stay whole. Takes 16 bytes.
//   Json fit{{"rows", 30}, {"noise", 0.5}, {"agents", Json::array()}};
//   fit["agents"].push_back({{"name", "north"}, {"x", std::vector<double>{1, 2}}});
//   fit.get<double>("noise");
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<JsonMember>;

  Json() = default;
  Json(std::nullptr_t) {}
  template <std::same_as<bool> T>  // no pointer becomes a truth value
  Json(T value) : kind_(Kind::kBool) {
    as_.truth = value;
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value) : kind_(Kind::kInteger) {
    as_.integer = static_cast<std::int64_t>(value);
    if (std::cmp_greater(value, std::numeric_limits<std::int64_t>::max()))
      kind_ = Kind::kUnsigned, as_.large = static_cast<std::uint64_t>(value);
  }
  template <std::floating_point T>
  Json(T value) : kind_(Kind::kDouble) {
    as_.real = static_cast<double>(value);
  }
  Json(std::string text) : kind_(Kind::kString) { as_.string = new std::string(std::move(text)); }
  Json(std::string_view text) : Json(std::string(text)) {}
  Json(const char* text) : Json(std::string(text)) {}
  Json(Array list) : kind_(Kind::kArray) { as_.array = new Array(std::move(list)); }
  template <class T>
  Json(const std::vector<T>& list) : Json(Array(list.begin(), list.end())) {}
  Json(std::initializer_list<JsonField> members);  // an object: {{"key", value}, …}
  static Json array(std::initializer_list<Json> list = {}) { return Array(list); }
  static Json object();

  Json(const Json& other);
  Json(Json&& other) noexcept : kind_(std::exchange(other.kind_, Kind::kNull)), as_(other.as_) {}
  Json& operator=(Json other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(as_, other.as_);
    return *this;
  }
  ~Json() {
    if (kind_ >= Kind::kString) destroy();
  }

  bool is_null() const noexcept { return kind_ == Kind::kNull; }
  bool is_bool() const noexcept { return kind_ == Kind::kBool; }
  bool is_integer() const noexcept { return kind_ == Kind::kInteger || kind_ == Kind::kUnsigned; }
  bool is_number() const noexcept { return is_integer() || kind_ == Kind::kDouble; }
  bool is_string() const noexcept { return kind_ == Kind::kString; }
  bool is_array() const noexcept { return kind_ == Kind::kArray; }
  bool is_object() const noexcept { return kind_ == Kind::kObject; }
  bool is_structured() const noexcept { return is_array() || is_object(); }

  std::size_t size() const;  // of elements or members; 0 of anything else
  bool empty() const { return size() == 0; }

  // BadInput where the value is of another kind. A null that is not const becomes an empty one.
  const Array& elements() const;
  Array& elements();
  const Object& members() const;
  Object& members();
  const std::string& string() const;

  // The value at a key; nullptr where the key is missing or this is no object.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key) { return const_cast<Json*>(std::as_const(*this).find(key)); }
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  // BadInput where the key is missing.
  const Json& at(std::string_view key) const;
  const Json& operator[](std::string_view key) const { return at(key); }
  const Json& operator[](std::size_t index) const { return elements().at(index); }
  // Adds the key where it is missing.
  Json& operator[](std::string_view key);
  Json& operator[](std::size_t index) { return elements().at(index); }
  Json& push_back(Json value) { return elements().emplace_back(std::move(value)); }
  Json& back() { return elements().back(); }
  void erase(std::string_view key);

  // As T: bool, a number, std::string, or std::vector of them. BadInput says what was found where,
  // as in "'alone[0][2]' is null, not a number". A whole number has to fit T; 3.0 is one too.
  template <class T>
  T get() const {
    T value{};
    read(value, {});
    return value;
  }
  template <class T>
  T get(std::string_view key) const {
    T value{};
    at(key).read(value, {.key = key});
    return value;
  }
  template <class T>
  T get_or(std::string_view key, T fallback) const {
    return contains(key) ? get<T>(key) : std::move(fallback);
  }

  // In a few words: 0.5, "abc", a list of 3.
  std::string description() const;

  // Numbers by their value, objects in any order of their members.
  friend bool operator==(const Json& a, const Json& b) { return a.equals(b); }

 private:
  enum class Kind : std::uint8_t {
    kNull,
    kBool,
    kInteger,
    kUnsigned,  // above the largest std::int64_t only
    kDouble,
    kString,  // from here on `as_` owns
    kArray,
    kObject
  };
  union As {
    bool truth;
    std::int64_t integer;
    std::uint64_t large;
    double real;
    std::string* string;
    Array* array;
    Object* object;
  };
  // Where a value that is read stands: below a key, and there in lists.
  struct Place {
    std::string_view key = {};
    const Place* list = nullptr;  // that holds it
    std::size_t index = 0;        // in that list
    std::string text() const;
  };
  friend class JsonPrinter;

  template <class T>
  void read(T& value, const Place& place) const;
  template <class T>
  void read(std::vector<T>& list, const Place& place) const;
  bool as_bool(const Place& place) const;
  std::int64_t as_integer(const Place& place, std::int64_t lo, std::int64_t hi) const;
  std::uint64_t as_unsigned(const Place& place, std::uint64_t hi) const;
  double as_double(const Place& place) const;
  const std::string& as_string(const Place& place) const;
  const Array& as_array(const Place& place) const;
  [[noreturn]] void refuse(const Place& place, const std::string& wanted) const;
  bool equals(const Json& other) const;
  void destroy() noexcept;

  Kind kind_ = Kind::kNull;
  As as_ = {};
};

struct JsonMember {
  std::string key;
  Json value;
};

// A member of an object in braces. std::initializer_list is const; mutable lets the value be moved.
struct JsonField {
  std::string_view key;
  mutable Json value;
};

// What parse_json throws: where the text is wrong, and what was expected. The file's name is not in
// it; the caller adds it.
class BadJson : public BadInput {
 public:
  using BadInput::BadInput;
};

struct JsonLimits {
  std::size_t depth = 64;                    // arrays and objects inside each other
  std::size_t bytes = std::size_t{1} << 34;  // of the text
};

// BadJson where the text is not UTF-8 or not JSON, exceeds a limit, has a number that no double can
// hold, or an object with the same key twice.
Json parse_json(std::string_view text, const JsonLimits& limits = {});

// The parts of a text in their order, for files too large to hold as a value. Returning false ends
// the reading.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual bool value(Json value) = 0;  // null, a truth value, a number or a string
  virtual bool key(const std::string& name) = 0;
  virtual bool begin_object() = 0;
  virtual bool end_object() = 0;
  virtual bool begin_array() = 0;
  virtual bool end_array() = 0;
};

// `read` fills at most so many bytes and returns their number, 0 at the end of the text.
void parse_json(FunctionRef<std::size_t(char*, std::size_t)> read, JsonEvents& events,
                const JsonLimits& limits = {});

struct JsonStyle {
  int indent = -1;          // blanks for every level; -1: all on one line
  bool flat_lists = false;  // a list of numbers or strings on one line all the same
  bool ascii = false;       // escape other characters; replace what is not UTF-8
};

// Doubles with as many digits as they need, and null where they are not finite. BadInput where a
// string is not UTF-8.
std::string print_json(const Json& json, const JsonStyle& style = {});

template <class T>
void Json::read(T& value, const Place& place) const {
  if constexpr (std::same_as<T, bool>)
    value = as_bool(place);
  else if constexpr (std::floating_point<T>)
    value = static_cast<T>(as_double(place));
  else if constexpr (std::signed_integral<T>)
    value = static_cast<T>(
        as_integer(place, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  else if constexpr (std::unsigned_integral<T>)
    value = static_cast<T>(as_unsigned(place, std::numeric_limits<T>::max()));
  else
    value = as_string(place);
}

template <class T>
void Json::read(std::vector<T>& list, const Place& place) const {
  const Array& all = as_array(place);
  list.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i].read(list[i], {.list = &place, .index = i});
}

}  // namespace affpcl
