#include "affpcl/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace affpcl {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

std::string again(const std::string& text) { return print_json(parse_json(text)); }

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const BadInput& e) {
    return e.what();
  }
  return "";
}
std::string complaint(const std::string& text, const JsonLimits& limits = {}) {
  return complaint([&] { parse_json(text, limits); });
}

// ---- values ----

TEST(Json, IsBuiltInBraces) {
  Json j{{"name", "north"},
         {"rows", std::size_t{3}},
         {"good", true},
         {"x", std::vector<double>{1, 2.5}},
         {"names", std::vector<std::string_view>{"a", "b"}},
         {"matrix", std::vector<std::vector<int>>{{1}, {2, 3}}},
         {"inner", {{"a", nullptr}, {"b", Json::object()}}},
         {"list", Json::array({1, "two", Json::array()})}};
  EXPECT_EQ(print_json(j),
            R"({"name":"north","rows":3,"good":true,"x":[1.0,2.5],"names":["a","b"],)"
            R"("matrix":[[1],[2,3]],"inner":{"a":null,"b":{}},"list":[1,"two",[]]})");
  EXPECT_EQ(sizeof(Json), 16u);
}

TEST(Json, MembersKeepTheirOrder) {
  Json j = parse_json(R"({"z": 1, "a": 2, "m": 3})");
  j["a"] = "changed";
  j["b"] = 4;
  EXPECT_EQ(print_json(j), R"({"z":1,"a":"changed","m":3,"b":4})");
  j.erase("z");
  j.erase("nowhere");
  EXPECT_EQ(print_json(j), R"({"a":"changed","m":3,"b":4})");
}

TEST(Json, NullBecomesWhatIsAskedOfIt) {
  Json j;
  j["list"].push_back(1);
  j["list"].push_back({{"k", 2}});
  j["object"]["k"] = 3;
  EXPECT_EQ(print_json(j), R"({"list":[1,{"k":2}],"object":{"k":3}})");
  EXPECT_EQ(complaint([&] { j["list"]["k"] = 1; }), "a value is a list of 2, not an object");
  EXPECT_EQ(complaint([&] { j["object"].push_back(1); }), "a value is an object, not a list");
}

TEST(Json, CopiesAreDeepAndMovesLeaveNull) {
  Json a{{"x", {{"y", "text"}}}};
  const Json b = a;
  a["x"]["y"] = 1;
  EXPECT_EQ(print_json(b), R"({"x":{"y":"text"}})");
  const Json c = std::move(a);
  EXPECT_TRUE(a.is_null());  // NOLINT: that is what is tested
  EXPECT_EQ(print_json(c), R"({"x":{"y":1}})");
  a = c["x"]["y"];
  EXPECT_EQ(a, 1);
}

TEST(Json, EqualityIsOfWhatIsMeant) {
  EXPECT_EQ(parse_json(R"({"a": 1, "b": [2]})"), parse_json(R"({"b": [2.0], "a": 1.0})"));
  EXPECT_NE(parse_json(R"({"a": 1})"), parse_json(R"({"a": 1, "b": 2})"));
  EXPECT_NE(parse_json(R"({"a": 1, "b": 2})"), parse_json(R"({"a": 1})"));
  EXPECT_NE(parse_json(R"({"a": 1})"), parse_json(R"({"b": 1})"));
  EXPECT_NE(parse_json("[1, 2]"), parse_json("[2, 1]"));
  EXPECT_NE(Json(1), Json(true));
  EXPECT_NE(Json(0), Json());
  EXPECT_NE(Json(""), Json());
  EXPECT_NE(Json::array(), Json::object());
  EXPECT_NE(Json(kMost), Json(kMost - 1));  // which as doubles are the same
  EXPECT_NE(Json(kMost), Json(std::uint64_t{kMost} + 1));
  EXPECT_NE(Json(-1), Json(kLargest));
  EXPECT_EQ(Json(), Json());
  EXPECT_EQ(Json(false), false);
  EXPECT_EQ(Json("a"), "a");
}

TEST(Json, IsFoundByKey) {
  const Json j = parse_json(R"({"a": {"b": [10, 20]}, "n": null})");
  EXPECT_EQ(j["a"]["b"][1], 20);
  EXPECT_TRUE(j.contains("n"));
  EXPECT_FALSE(j.contains("c"));
  EXPECT_FALSE(j["n"].contains("c"));
  EXPECT_EQ(j.find("c"), nullptr);
  EXPECT_EQ(j["n"].find("c"), nullptr);
  EXPECT_EQ(complaint([&] { j.at("c"); }), "'c' is missing");
  EXPECT_THROW(j["a"]["b"][2], std::out_of_range);
}

// ---- typed ----

TEST(Json, IsReadAsATypeOrSaysWhatItIs) {
  const Json j = parse_json(
      R"({"whole": 3, "same": 3.0, "half": 0.5, "minus": -1, "text": "abc", "yes": true,
          "list": [[1, 2], [3, null]], "names": ["a", "b"], "large": 18446744073709551615})");
  EXPECT_EQ(j.get<int>("whole"), 3);
  EXPECT_EQ(j.get<std::size_t>("same"), 3u);
  EXPECT_EQ(j.get<double>("whole"), 3);
  EXPECT_EQ(j.get<bool>("yes"), true);
  EXPECT_EQ(j["text"].get<std::string>(), "abc");
  EXPECT_EQ(j["list"][0].get<std::vector<double>>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(j.get<std::vector<std::string>>("names"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(j.get<std::uint64_t>("large"), kLargest);
  EXPECT_EQ(j.get_or("whole", 7), 3);
  EXPECT_EQ(j.get_or("nothing", 7), 7);
  const auto refused = [&](auto type, const char* key) {
    return complaint([&] { j.get<decltype(type)>(key); });
  };
  EXPECT_EQ(refused(0, "nothing"), "'nothing' is missing");
  EXPECT_EQ(refused(0, "half"), "'half' is 0.5, not a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(refused(std::uint8_t{}, "minus"), "'minus' is -1, not a whole number from 0 to 255");
  EXPECT_EQ(refused(std::int64_t{}, "large"),
            "'large' is 18446744073709551615, not a whole number from -9223372036854775808 to "
            "9223372036854775807");
  EXPECT_EQ(refused(std::uint32_t{}, "large"),
            "'large' is 18446744073709551615, not a whole number from 0 to 4294967295");
  EXPECT_EQ(refused(0.0, "text"), "'text' is \"abc\", not a number");
  EXPECT_EQ(refused(0.0, "yes"), "'yes' is true, not a number");
  EXPECT_EQ(refused(false, "whole"), "'whole' is 3, not true or false");
  EXPECT_EQ(refused(std::string(), "names"), "'names' is a list of 2, not a string");
  EXPECT_EQ(refused(std::vector<double>(), "whole"), "'whole' is 3, not a list");
  EXPECT_EQ(refused(std::vector<std::vector<double>>(), "list"),
            "'list[1][1]' is null, not a number");
  EXPECT_EQ(complaint([&] { j.get<int>(); }),
            "a value is an object, not a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(complaint([&] { j["names"].get<std::vector<int>>(); }).substr(0, 10), "'[0]' is \"");
}

TEST(Json, WholeNumbersBeyondTheirTypeAreRefused) {
  for (const char* text : {"1e300", "-1e300", "9223372036854775808", "9.3e18"})
    EXPECT_NE(complaint([&] { parse_json(text).get<std::int64_t>(); }), "") << text;
  EXPECT_EQ(parse_json("-9223372036854775808").get<std::int64_t>(), kLeast);
  EXPECT_NE(complaint([&] { parse_json("-1").get<std::uint64_t>(); }), "");
}

TEST(Json, ALongTextIsNotRepeatedInAComplaint) {
  std::string text(10000, 'x');
  text += "\n\xff";
  const Json j{{"k", text}};
  const std::string said = complaint([&] { j.get<double>("k"); });
  EXPECT_LT(said.size(), 100u);
  EXPECT_EQ(said.substr(0, 12), "'k' is \"xxxx");
}

// ---- reading and printing ----

TEST(Json, TextsComeBackAsTheyWere) {
  for (const char* text : {"null",
                           "true",
                           "false",
                           "0",
                           "-1",
                           "\"\"",
                           "[]",
                           "{}",
                           "[[],{}]",
                           R"({"":{"a":[1,2.5]}})",
                           "9223372036854775807",
                           "-9223372036854775808",
                           "18446744073709551615",
                           "1e+300",
                           "1.7976931348623157e+308",
                           "1e+308",
                           "5e-324",
                           "2.2250738585072014e-308",
                           "-0.0",
                           "0.1",
                           "0.3333333333333333",
                           "100000000000000.0",
                           "1e+15",
                           "1e-05",
                           "0.0001",
                           "123456.789"})
    EXPECT_EQ(again(text), text);
}

TEST(Json, NumbersOutsideTheirTypeBecomeDoubles) {
  EXPECT_EQ(again("18446744073709551616"), "1.8446744073709552e+19");
  EXPECT_EQ(again("-9223372036854775809"), "-9.223372036854776e+18");
  EXPECT_EQ(again("1e-400"), "0.0");
  EXPECT_TRUE(std::signbit(parse_json("-0.0").get<double>()));
}

TEST(Json, WhatIsNotFiniteIsNull) {
  EXPECT_EQ(print_json(std::vector<double>{std::nan(""), INFINITY, -INFINITY, 1}),
            "[null,null,null,1.0]");
}

TEST(Json, StringsAreEscaped) {
  const std::string text = "a\"b\\c/\b\f\n\r\t\x01\x1f\x7f é € 😀";
  const std::string shown = "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f é € 😀\"";
  EXPECT_EQ(print_json(text), shown);
  EXPECT_EQ(parse_json(shown).string(), text);
  EXPECT_EQ(print_json(text, {.ascii = true}),
            "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f \\u00e9 \\u20ac \\ud83d\\ude00\"");
  EXPECT_EQ(parse_json(R"("\u00e9\ud83d\ude00\/")").string(), "é😀/");
  EXPECT_EQ(print_json({{"é\n", 1}}), "{\"é\\n\":1}");
  EXPECT_EQ(parse_json(R"("a\u0000b")").string(), std::string("a\0b", 3));
}

TEST(Json, WhatIsNotUtf8IsRefused) {
  for (const auto& [bytes, column] :
       {std::pair{"\xff", 3}, {"\xc3", 4}, {"\xc0\xaf", 3}, {"\xed\xa0\x80", 4}, {"\xf5\x80", 3}}) {
    EXPECT_EQ(
        complaint("[\"" + std::string(bytes) + "\"]"),
        "line 1, column " + std::to_string(column) + ": invalid string: ill-formed UTF-8 byte");
    const auto print = [&, bytes = bytes] { print_json(std::string("caf") + bytes); };
    EXPECT_NE(complaint(print).find("\"caf\\ufffd"), std::string::npos) << complaint(print);
    EXPECT_NE(complaint(print).find("not UTF-8"), std::string::npos) << complaint(print);
  }
  EXPECT_EQ(print_json("caf\xe9!", {.ascii = true}), R"("caf\ufffd!")");
}

TEST(Json, IsIndented) {
  const Json j{{"a", Json::array({1, "x"})},
               {"b", {{"c", Json::array({Json::array({1, 2}), Json::array()})}}},
               {"e", Json::object()}};
  EXPECT_EQ(print_json(j, {.indent = 1}),
            "{\n \"a\": [\n  1,\n  \"x\"\n ],\n \"b\": {\n  \"c\": [\n   [\n    1,\n    2\n   ],\n"
            "   []\n  ]\n },\n \"e\": {}\n}");
  EXPECT_EQ(print_json(j, {.indent = 1, .flat_lists = true}),
            "{\n \"a\": [1,\"x\"],\n \"b\": {\n  \"c\": [\n   [1,2],\n   []\n  ]\n },\n \"e\": "
            "{}\n}");
  EXPECT_EQ(print_json(Json::array({1}), {.indent = 0}), "[\n1\n]");
}

// ---- bad texts ----

TEST(Json, BadTextIsRefusedWithItsPlace) {
  EXPECT_EQ(complaint(""),
            "line 1, column 1: unexpected end of input; expected '[', '{', or a literal");
  EXPECT_EQ(complaint("{\"A\":\n [1,\n ,2]}"),
            "line 3, column 2: unexpected ','; expected '[', '{', or a literal");
  EXPECT_EQ(complaint("[1 2]"), "line 1, column 4: unexpected number literal; expected ']'");
  EXPECT_EQ(complaint("{\"a\" 1}"), "line 1, column 6: unexpected number literal; expected ':'");
  EXPECT_EQ(complaint("{a: 1}").substr(0, 17), "line 1, column 2:");
  EXPECT_EQ(complaint("\n\n[1]\n]"), "line 4, column 1: unexpected ']'; expected end of input");
  EXPECT_EQ(complaint("[1, 1e999]"), "line 1, column 9: '1e999' is too large for a double");
  EXPECT_LT(complaint("1" + std::string(1000, '0') + ".0").size(), 100u);
  EXPECT_EQ(complaint("[nul]"), "line 1, column 5: invalid literal");
  EXPECT_EQ(complaint("[NaN]"), "line 1, column 2: invalid literal");
  EXPECT_EQ(complaint("[1] // one").substr(0, 17), "line 1, column 5:");
  EXPECT_EQ(complaint("\"" + std::string(1 << 20, 'x')),
            "line 1, column 1048578: invalid string: missing closing quote");
  EXPECT_EQ(complaint("\"a\nb\"").find('\n'), std::string::npos);
}

TEST(Json, AnyCutIsNoticed) {
  const std::string whole = R"({"a": [1, -2.5e1, true, null], "b": {"c": "dé\n\u00e9"}})";
  ASSERT_EQ(complaint(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(parse_json(whole.substr(0, size)), BadJson) << size;
}

TEST(Json, NestingIsBounded) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(complaint(nested(64)), "");
  EXPECT_EQ(complaint(nested(65)),
            "line 1, column 65: arrays and objects are nested more than 64 deep");
  EXPECT_NE(complaint(nested(1'000'000)), "");
  EXPECT_NE(complaint(std::string(1'000'000, '[')), "");
  EXPECT_EQ(complaint(nested(3), {.depth = 3}), "");
  EXPECT_EQ(complaint("[[[1], {}], {\n\"a\": {\"b\": {}}}]", {.depth = 3}),
            "line 2, column 12: arrays and objects are nested more than 3 deep");
  EXPECT_EQ(complaint("[[], [], {}, [{}]]", {.depth = 3}), "");  // side by side is not deep
}

TEST(Json, LengthIsBounded) {
  EXPECT_EQ(complaint("[1, 2]", {.bytes = 6}), "");
  EXPECT_EQ(complaint("[1, 2]", {.bytes = 5}), "it is longer than 5 bytes");
}

TEST(Json, AKeyTwiceIsRefused) {
  EXPECT_EQ(complaint("{\"a\": {\"b\": 1, \"c\": 2,\n \"b\": 3}}"),
            "line 2, column 8: the object that ends here has the key \"b\" twice");
  EXPECT_EQ(complaint(R"([{"a": 1}, {"a": 2}])"), "");
}

// ---- events ----

// Writes down what it meets.
class Notes final : public JsonEvents {
 public:
  explicit Notes(std::string end = "") : end_(std::move(end)) {}
  bool value(Json value) override { return note(print_json(value)); }
  bool key(const std::string& name) override { return note(name + ":"); }
  bool begin_object() override { return note("{"); }
  bool end_object() override { return note("}"); }
  bool begin_array() override { return note("["); }
  bool end_array() override { return note("]"); }
  std::string all;

 private:
  bool note(const std::string& what) {
    all += what + " ";
    return what != end_;
  }
  std::string end_;
};

// Parses by events, the text in parts of a size.
void in_parts(const std::string& text, std::size_t size, JsonEvents& events,
              const JsonLimits& limits = {}) {
  std::size_t at = 0;
  const auto read = [&](char* to, std::size_t most) {
    const std::size_t got = std::min({size, most, text.size() - at});
    text.copy(to, got, at);
    at += got;
    return got;
  };
  parse_json(read, events, limits);
}

TEST(JsonEvents, AreMetInOrder) {
  const std::string text = R"({"a": [1, -2, 0.5, true, null], "b": {"c": "dé"}, "e": {}})";
  for (std::size_t size : {1u, 2u, 7u, 1000u}) {
    Notes notes;
    in_parts(text, size, notes);
    EXPECT_EQ(notes.all, "{ a: [ 1 -2 0.5 true null ] b: { c: \"dé\" } e: { } } ");
  }
}

TEST(JsonEvents, EndWhereAFunctionSaysSo) {
  Notes notes("2");
  in_parts("[1, 2, 3, nonsense", 100, notes);
  EXPECT_EQ(notes.all, "[ 1 2 ");
}

TEST(JsonEvents, HaveTheSameBounds) {
  const auto said = [](const std::string& text, const JsonLimits& limits) {
    return complaint([&] {
      Notes notes;
      in_parts(text, 3, notes, limits);
    });
  };
  EXPECT_EQ(said("[1,\n[2]]", {}), "");
  EXPECT_EQ(said("[1,\n[2]]", {.depth = 1}),
            "byte 5: arrays and objects are nested more than 1 deep");
  EXPECT_EQ(said("[1,\n[2]]", {.bytes = 7}), "it is longer than 7 bytes");
  EXPECT_EQ(said("[1,\n[2]", {}), "byte 8: unexpected end of input; expected ']'");
}

}  // namespace
}  // namespace affpcl
