#include "affpcl/base/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

using Given = std::map<std::string, Value>;

const std::vector<Param>& table() {
  static const std::vector<Param> kTable = {
      {.name = "flag", .doc = "a flag", .fallback = true},
      {.name = "count",
       .doc = "a whole number",
       .fallback = std::int64_t{3},
       .allowed = between(1, 10)},
      {.name = "rate", .doc = "a number", .fallback = 0.5, .allowed = above(0, 2)},
      {.name = "free", .doc = "any finite number", .fallback = -1.0},
      {.name = "mode", .doc = "a choice", .fallback = "fast", .choices = {"fast", "slow"}},
      {.name = "label", .doc = "any text", .fallback = ""},
      {.name = "list",
       .doc = "numbers",
       .fallback = std::vector<double>{0, -1},
       .allowed = at_least(-5)},
  };
  return kTable;
}

// The sentence with which `given` is refused; empty if it is not.
std::string complaint(const Given& given) {
  try {
    Values(table(), given, "spec.toml: run");
  } catch (const BadInput& e) {
    return e.what();
  }
  return "";
}

enum class Colour { kRed, kDarkBlue };

struct Brush {
  int hairs = 7;
  bool soft = false;
};

struct Painting {
  std::int64_t number = 3;
  double width = 1.5;
  Colour colour = Colour::kDarkBlue;
  bool framed = true;
  std::string title = "untitled";
  std::vector<std::int64_t> layers = {0, -1};
  Brush brush = {.hairs = 9};
};

}  // namespace

template <>
struct EnumNames<Colour> {
  static constexpr std::string_view all[] = {"red", "dark-blue"};
};

namespace {

const Params<Painting>& painting() {
  static const Params<Brush> kBrush = {{"hairs", &Brush::hairs, "", at_least(1)},
                                       {"brush", &Brush::soft, {"hard", "soft"}, ""}};
  static const auto kParams = Params<Painting>{
      {"number", &Painting::number, "a number", between(1, 5)},
      {"width", &Painting::width, "", above(0)},
      {"colour", &Painting::colour, ""},
      {"framed", &Painting::framed, ""},
      {"title", &Painting::title, ""},
      {"layers", &Painting::layers,
       ""}}.add(&Painting::brush, kBrush);
  return kParams;
}

Painting painted(const Given& given) {
  return painting().read(Values(painting().table(), given, "spec"));
}

std::string why_not_painted(const Given& given) {
  try {
    painted(given);
  } catch (const BadInput& e) {
    return e.what();
  }
  return "";
}

TEST(Params, TakeDefaultsFromTheConfig) {
  const std::vector<Value> expected = {
      std::int64_t{3}, 1.5,   "dark-blue", true, "untitled", std::vector<double>{0, -1},
      std::int64_t{9}, "hard"};
  ASSERT_EQ(painting().table().size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k)
    EXPECT_EQ(painting().table()[k].fallback, expected[k]) << painting().table()[k].name;
  EXPECT_EQ(painted({}).brush.hairs, 9);
  EXPECT_EQ(painted({}).colour, Colour::kDarkBlue);
}

TEST(Params, ReadEveryKindOfMember) {
  const Painting p = painted({{"number", std::int64_t{4}},
                              {"width", std::int64_t{2}},
                              {"colour", "red"},
                              {"framed", false},
                              {"title", "sea"},
                              {"layers", std::vector<double>{5}},
                              {"hairs", std::int64_t{20}},
                              {"brush", "soft"}});
  EXPECT_EQ(p.number, 4);
  EXPECT_EQ(p.width, 2);
  EXPECT_EQ(p.colour, Colour::kRed);
  EXPECT_FALSE(p.framed);
  EXPECT_EQ(p.title, "sea");
  EXPECT_EQ(p.layers, std::vector<std::int64_t>{5});
  EXPECT_EQ(p.brush.hairs, 20);
  EXPECT_TRUE(p.brush.soft);
  for (const auto& entry : painting().entries())
    EXPECT_EQ(entry.get(painted({})), entry.param.fallback) << entry.param.name;
}

TEST(Params, RefuseWhatTheMemberCannotHold) {
  EXPECT_EQ(why_not_painted({{"colour", "blue"}}),
            "spec.colour = \"blue\" is not known; allowed: red, dark-blue");
  EXPECT_EQ(why_not_painted({{"number", std::int64_t{6}}}),
            "spec.number = 6 is not allowed: it must be at least 1 and at most 5");
  EXPECT_EQ(why_not_painted({{"layers", std::vector<double>{0, 1.5}}}),
            "spec.layers = [0, 1.5] is not allowed: 1.5 is not a whole number");
  EXPECT_EQ(why_not_painted({{"hairs", std::int64_t{1} << 40}}),  // an int
            "spec.hairs = 1099511627776 is not allowed: it must be at least 1 and at most "
            "2147483647");
}

TEST(Names, AreTextsOfEnums) {
  EXPECT_EQ(name_of(Colour::kDarkBlue), "dark-blue");
  EXPECT_EQ(value_of<Colour>("red", "colour"), Colour::kRed);
  EXPECT_THROW(value_of<Colour>("Red", "colour"), BadInput);
}

TEST(Values, FillInEveryDefault) {
  const Values v(table(), {}, "here");
  EXPECT_TRUE(v.flag("flag"));
  EXPECT_EQ(v.integer("count"), 3);
  EXPECT_EQ(v.number("rate"), 0.5);
  EXPECT_EQ(v.number("free"), -1);
  EXPECT_EQ(v.text("mode"), "fast");
  EXPECT_EQ(v.text("label"), "");
  EXPECT_EQ(v.list("list"), (std::vector<double>{0, -1}));
  EXPECT_EQ(v.all().size(), table().size());
}

TEST(Values, TakeWhatIsGiven) {
  const Values v(table(),
                 {{"flag", false},
                  {"count", std::int64_t{10}},
                  {"rate", 2.0},
                  {"mode", std::string("slow")},
                  {"label", std::string("x, y")},
                  {"list", std::vector<double>{}}},
                 "here");
  EXPECT_FALSE(v.flag("flag"));
  EXPECT_EQ(v.integer("count"), 10);
  EXPECT_EQ(v.number("rate"), 2);
  EXPECT_EQ(v.text("mode"), "slow");
  EXPECT_EQ(v.text("label"), "x, y");
  EXPECT_TRUE(v.list("list").empty());
}

TEST(Values, WholeNumberServesAsNumber) {
  const Values v(table(), {{"rate", std::int64_t{2}}}, "here");
  EXPECT_EQ(v.number("rate"), 2.0);
  EXPECT_TRUE(std::holds_alternative<double>(v.all().at("rate")));
}

TEST(Values, WrongTypesAreRefusedInAllPairs) {
  const std::vector<Value> values = {true, std::int64_t{1}, 1.0, std::string("fast"),
                                     std::vector<double>{1}};
  const char* words[] = {"true or false", "a whole number", "a number", "a text",
                         "a list of numbers"};
  for (const Param& p : table())
    for (const Value& v : values) {
      const bool fits =
          p.fallback.index() == v.index() ||
          (std::holds_alternative<double>(p.fallback) && std::holds_alternative<std::int64_t>(v));
      const std::string said = complaint({{std::string(p.name), v}});
      if (fits) {
        EXPECT_EQ(said, "") << p.name << " = " << to_text(v);
        continue;
      }
      EXPECT_EQ(said, "spec.toml: run." + std::string(p.name) + " = " + to_text(v) +
                          " is not allowed: it must be " + words[p.fallback.index()]);
    }
}

TEST(Values, RangesIncludeTheirEndsUnlessAbove) {
  EXPECT_EQ(complaint({{"count", std::int64_t{1}}}), "");
  EXPECT_EQ(complaint({{"count", std::int64_t{0}}}),
            "spec.toml: run.count = 0 is not allowed: it must be at least 1 and at most 10");
  EXPECT_NE(complaint({{"count", std::int64_t{11}}}), "");
  EXPECT_NE(complaint({{"count", std::numeric_limits<std::int64_t>::max()}}), "");
  EXPECT_NE(complaint({{"count", std::numeric_limits<std::int64_t>::min()}}), "");
  EXPECT_EQ(complaint({{"rate", 0.0}}),
            "spec.toml: run.rate = 0 is not allowed: it must be above 0 and at most 2");
  EXPECT_EQ(complaint({{"rate", std::numeric_limits<double>::min()}}), "");
  EXPECT_NE(complaint({{"rate", std::nextafter(2.0, 3.0)}}), "");
}

TEST(Values, WhatIsNotFiniteIsRefused) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const char* name : {"rate", "free"})
    for (double x : {inf, -inf, nan}) EXPECT_NE(complaint({{name, x}}), "") << name << " = " << x;
  EXPECT_NE(complaint({{"free", nan}}).find("finite"), std::string::npos);
  EXPECT_EQ(complaint({{"free", std::numeric_limits<double>::max()}}), "");
}

TEST(Values, EveryEntryOfAListIsChecked) {
  EXPECT_EQ(complaint({{"list", std::vector<double>{1, 2, -5}}}), "");
  EXPECT_EQ(complaint({{"list", std::vector<double>{1, -6, 2}}}),
            "spec.toml: run.list = [1, -6, 2] is not allowed: it must be at least -5");
  EXPECT_NE(complaint({{"list", std::vector<double>{1, std::nan("")}}}), "");
}

TEST(Values, UnknownKeysComeWithASuggestion) {
  EXPECT_EQ(complaint({{"cuont", std::int64_t{1}}}),
            "spec.toml: run.cuont is not a known key; did you mean 'count'?");
  EXPECT_EQ(complaint({{"entirely", std::int64_t{1}}}),
            "spec.toml: run.entirely is not a known key; allowed: flag, count, rate, free, mode, "
            "label, list");
}

TEST(Values, ChoicesComeWithASuggestion) {
  EXPECT_EQ(complaint({{"mode", std::string("slwo")}}),
            "spec.toml: run.mode = \"slwo\" is not known; did you mean 'slow'?");
  EXPECT_EQ(complaint({{"mode", std::string("sideways")}}),
            "spec.toml: run.mode = \"sideways\" is not known; allowed: fast, slow");
}

TEST(Values, ReadingWhatIsNotThereIsAMistakeInTheProgram) {
  const Values v(table(), {}, "here");
  EXPECT_THROW(v.number("nothing"), std::logic_error);
  EXPECT_THROW(v.number("count"), std::bad_variant_access);
  EXPECT_THROW(Values().flag("flag"), std::logic_error);
}

TEST(DidYouMean, FindsSlipsOfTheFinger) {
  const std::vector<std::string_view> words = {"seed", "steps", "step_size", "replicates", "tail"};
  EXPECT_EQ(did_you_mean("sedd", words), "seed");   // one letter
  EXPECT_EQ(did_you_mean("tial", words), "tail");   // two swapped
  EXPECT_EQ(did_you_mean("step", words), "steps");  // one missing
  EXPECT_EQ(did_you_mean("stepsize", words), "step_size");
  EXPECT_EQ(did_you_mean("replicate", words), "replicates");
  EXPECT_EQ(did_you_mean("seed", words), "seed");
}

TEST(DidYouMean, SaysNothingWhenNothingIsNear) {
  const std::vector<std::string_view> words = {"seed", "steps", "replicates"};
  EXPECT_EQ(did_you_mean("banana", words), "");
  EXPECT_EQ(did_you_mean("", words), "");
  EXPECT_EQ(did_you_mean("seed", {}), "");
}

TEST(DidYouMean, HintListsWhatIsAllowedOtherwise) {
  const std::vector<std::string_view> words = {"exact", "none"};
  EXPECT_EQ(hint("exakt", words), "; did you mean 'exact'?");
  EXPECT_EQ(hint("zzz", words), "; allowed: exact, none");
  EXPECT_EQ(hint("zzz", {}), "");
}

TEST(ToText, IsWhatAPersonWouldWrite) {
  EXPECT_EQ(to_text(true), "true");
  EXPECT_EQ(to_text(false), "false");
  EXPECT_EQ(to_text(std::int64_t{-7}), "-7");
  EXPECT_EQ(to_text(0.3), "0.3");
  EXPECT_EQ(to_text(std::string("exact")), "\"exact\"");
  EXPECT_EQ(to_text(std::vector<double>{0, -1, 0.5}), "[0, -1, 0.5]");
  EXPECT_EQ(to_text(std::vector<double>{}), "[]");
}

TEST(ToText, NumbersSurviveTheRoundTrip) {
  for (double x : {0.1, 1.0 / 3, 1e-300, 1.7976931348623157e308, 5e-324, -2.5, 1e22})
    EXPECT_EQ(std::strtod(to_text(x).c_str(), nullptr), x);
}

TEST(Errors, AreToldApart) {
  EXPECT_STREQ(BadInput("run.steps = 0").what(), "run.steps = 0");
  const auto bad = [] { throw BadInput("x"); };
  const auto failed = [] { throw Failure("x"); };
  EXPECT_THROW(bad(), BadInput);
  EXPECT_THROW(failed(), Failure);
  EXPECT_FALSE((std::is_base_of_v<BadInput, Failure> || std::is_base_of_v<Failure, BadInput>));
}

}  // namespace
}  // namespace affpcl
