#include "affpcl/data/leaf.h"

#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <limits>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"
#include "affpcl/data/columns.h"
#include "affpcl/data/field.h"
#include "affpcl/data/input_file.h"
#include "affpcl/data/levels.h"

namespace affpcl {
namespace {

// What the parser meets, told apart by depth and keys; everything but x and y is passed over.
//   depth 1: the keys of the file; 2: users; 3: x and y of a user; 4: their samples; 5: numbers of
//   x
class Handler final : public JsonEvents {
 public:
  // header_only: stop as soon as the number of columns is known.
  Handler(std::string path, bool header_only) : path_(std::move(path)), header_only_(header_only) {
    agent_.name = "agent", agent_.type = Column::Type::kText;
    y_.name = 'y';
  }

  void parse() {
    InputFile file(path_);
    try {
      parse_json([&](char* to, std::size_t bytes) { return file.read(to, bytes); }, *this,
                 {.bytes = std::numeric_limits<std::size_t>::max()});
    } catch (const BadJson& e) {
      throw BadInput(fmt::format("{} is not JSON, or cut short, at {}", path_, e.what()));
    }
    if (!found_)
      throw BadInput(fmt::format(
          "{} has no 'user_data'; of JSON files only those that LEAF writes can be read", path_));
    if (x_.empty()) throw BadInput(fmt::format("{} has no samples in 'user_data'", path_));
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all{"agent", "y"};
    for (std::string& name : numbered("x", x_.size())) all.push_back(std::move(name));
    return all;
  }

  DataTable table(const std::vector<std::string>& wanted) {
    const std::vector<std::string> all = names();
    const std::vector<char> chosen = choose_columns(path_, all, wanted);
    DataTable table;
    table.path = path_;
    table.rows = static_cast<std::int64_t>(agent_.codes.size());
    if (chosen[0] != 0) table.columns.push_back(std::move(agent_));
    if (chosen[1] != 0) table.columns.push_back(std::move(y_));
    for (std::size_t c = 2; c < all.size(); ++c)
      if (chosen[c] != 0)
        table.columns.push_back({.name = all[c], .numbers = std::move(x_[c - 2])});
    return table;
  }

  bool key(const std::string& name) override {
    if (depth_ == 1) in_data_ = name == "user_data", found_ |= in_data_;
    if (depth_ == 2) user_ = name;
    if (depth_ == 3) part_ = !in_data_ ? ' ' : name == "x" ? 'x' : name == "y" ? 'y' : ' ';
    return true;
  }

  bool begin_object() override {
    refuse_unless(!in_sample(), "an object");
    if (in_data_ && depth_ == 2) rows_x_ = rows_y_ = 0;
    return enter();
  }

  bool end_object() override {
    --depth_;
    if (in_data_ && depth_ == 2) finish_user();
    if (depth_ == 1) in_data_ = false;
    if (depth_ == 3) part_ = ' ';
    return true;
  }

  bool begin_array() override {
    refuse_unless(!in_data_ || depth_ >= 3, "a list");
    refuse_unless(part_ != 'x' || depth_ <= 4, "a list");
    refuse_unless(part_ != 'y' || depth_ <= 3, "a list");
    if (part_ == 'x' && depth_ == 4) width_ = 0;
    return enter();
  }

  bool end_array() override {
    --depth_;
    const bool row = part_ == 'x' && depth_ == 4;
    if (depth_ == 3) part_ = ' ';
    if (!row) return true;
    if (width_ != x_.size())
      throw BadInput(fmt::format("{} has {} numbers, and samples before it have {}", sample('x'),
                                 width_, x_.size()));
    ++rows_x_;
    first_ = false;
    return !header_only_;
  }

  bool value(Json v) override {
    if (v.is_number()) return number(v.get<double>());
    if (v.is_bool()) return number(v.get<bool>() ? 1 : 0);
    if (v.is_string()) return text(v.string());
    refuse_unless(!in_sample(), "null");
    return true;
  }

 private:
  bool text(const std::string& text) {
    if (part_ != 'y' || depth_ != 4) {
      refuse_unless(!in_sample(), fmt::format("'{}'", shown(text)));
      return true;
    }
    if (y_.type == Column::Type::kNumber && !y_.numbers.empty()) refuse_unless(false, "a text");
    y_.type = Column::Type::kText;
    y_levels_.add(text);
    ++rows_y_;
    return true;
  }

  bool enter() {
    ++depth_;
    return true;
  }

  bool in_sample() const { return in_data_ && part_ != ' ' && depth_ >= 3; }

  std::string sample(char part) const {
    return fmt::format("{}, user '{}', {} of sample {}", path_, shown(user_), part,
                       1 + (part == 'x' ? rows_x_ : rows_y_));
  }

  void refuse_unless(bool good, std::string_view what) const {
    if (!good)
      throw BadInput(fmt::format("{} is {}; x has to be a list of numbers, y a number or a text",
                                 sample(part_ == 'y' ? 'y' : 'x'), what));
  }

  bool number(double value) {
    if (!in_sample()) return true;
    refuse_unless(depth_ == (part_ == 'x' ? 5 : 4), "a number");
    if (!std::isfinite(value)) refuse_unless(false, "too large for a double");
    if (part_ == 'y') {
      if (y_.type == Column::Type::kText) refuse_unless(false, "a number among texts");
      y_.numbers.push_back(value);
      ++rows_y_;
      return true;
    }
    if (width_ == x_.size()) {
      if (!first_)
        throw BadInput(fmt::format("{} has more than {} numbers, as samples before it have",
                                   sample('x'), x_.size()));
      x_.emplace_back();
      refuse_too_many_columns(path_, x_.size());
    }
    x_[width_++].push_back(value);
    return true;
  }

  void finish_user() {
    if (rows_x_ != rows_y_)
      throw BadInput(fmt::format("{}, user '{}': {} samples in x and {} in y", path_, shown(user_),
                                 rows_x_, rows_y_));
    if (is_missing(user_))
      throw BadInput(fmt::format("{}: '{}' names no user", path_, shown(user_)));
    for (std::size_t r = 0; r < rows_x_; ++r) agent_levels_.add(user_);
  }

  std::string path_;
  bool header_only_;
  int depth_ = 0;
  bool in_data_ = false, found_ = false, first_ = true;
  char part_ = ' ';  // x, y or neither
  std::string user_;
  std::size_t rows_x_ = 0, rows_y_ = 0, width_ = 0;  // of this user, of this sample
  Column agent_, y_;
  Levels agent_levels_{agent_}, y_levels_{y_};
  std::vector<std::vector<double>> x_;
};

}  // namespace

std::vector<std::string> leaf_header(const std::string& path) {
  Handler handler(path, true);
  handler.parse();
  return handler.names();
}

DataTable read_leaf(const std::string& path, const TableOptions& options) {
  Handler handler(path, false);
  handler.parse();
  return handler.table(options.columns);
}

}  // namespace affpcl
