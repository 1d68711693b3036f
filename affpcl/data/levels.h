// A column of texts in the making: each different text is kept once, and rows hold its number.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "affpcl/data/field.h"
#include "affpcl/data/table.h"

namespace affpcl {

class Levels {
 public:
  // What is added goes to `column`, which stays where it is as long as this lives.
  explicit Levels(Column& column, const MissingWords& missing = usual_missing())
      : column_(column), missing_(missing) {}
  Levels(const Levels&) = delete;
  Levels& operator=(const Levels&) = delete;

  void add(std::string_view field);

 private:
  // A set of levels that can be asked for a text, without a second copy of the texts.
  struct Text {
    using is_transparent = void;
    const std::vector<std::string>* levels;
    std::string_view of(std::string_view text) const { return text; }
    std::string_view of(std::int32_t code) const {
      return (*levels)[static_cast<std::size_t>(code)];
    }
    template <class T>
    std::size_t operator()(T x) const {
      return std::hash<std::string_view>()(of(x));
    }
    template <class T, class U>
    bool operator()(T x, U y) const {
      return of(x) == of(y);
    }
  };

  Column& column_;
  const MissingWords& missing_;
  std::int32_t last_ = -1;
  std::unordered_set<std::int32_t, Text, Text> known_{16, Text{&column_.levels},
                                                      Text{&column_.levels}};
};

}  // namespace affpcl
