#include "affpcl/data/leaf.h"

#include "affpcl/data/file_test.h"

namespace affpcl {
namespace {

using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

class Leaf : public FileTest {
 protected:
  Leaf() : FileTest(".json") {}

  DataTable read(const std::string& text, const TableOptions& options = {}) const {
    write(text);
    return read_table(path, options);
  }
  void refuses(const std::string& text, const std::string& what) const {
    refused([&] { read(text); }, what);
  }
  // A file with this in it of the user u.
  static std::string of_user(const std::string& data) {
    return R"({"users": ["u"], "num_samples": [1], "user_data": {"u": )" + data + "}}";
  }
};

TEST_F(Leaf, UsersBecomeAgents) {
  const DataTable t =
      read(R"({"users": ["f1", "f2"], "num_samples": [2, 1], "hierarchies": [{"x": [1]}],
    "user_data": {"f1": {"x": [[0.5, 1], [2, 3e1]], "y": [7, 8]},
                  "f2": {"y": [9], "note": {"x": [1, [2]]}, "x": [[-4, true]]},
                  "f3": {"x": [], "y": []}},
    "x": [[1]]})");
  EXPECT_EQ(t.rows, 3);
  EXPECT_EQ(t.names(), (Names{"agent", "y", "x0", "x1"}));
  EXPECT_EQ(table_header(path), t.names());
  EXPECT_EQ(t.column("agent").levels, (Names{"f1", "f2"}));
  EXPECT_EQ(t.column("agent").codes, (std::vector<std::int32_t>{0, 0, 1}));
  EXPECT_EQ(t.numbers("y"), (Numbers{7, 8, 9}));
  EXPECT_EQ(t.numbers("x0"), (Numbers{0.5, 2, -4}));
  EXPECT_EQ(t.numbers("x1"), (Numbers{1, 30, 1}));
  EXPECT_TRUE(names_agents(path));
}

TEST_F(Leaf, ATargetMayBeText) {
  const DataTable t =
      read(of_user(R"({"x": [[1], [2]], "y": ["cat", "dog"]})"), {.columns = {"x0", "y"}});
  EXPECT_EQ(t.names(), (Names{"x0", "y"}));
  EXPECT_EQ(t.column("y").levels, (Names{"cat", "dog"}));
}

TEST_F(Leaf, SaysWhatIsWrong) {
  refuses("", "is not JSON, or cut short, at byte");
  refuses("a,b\n1,2\n", "is not JSON");
  refuses("[1, 2]", "has no 'user_data'");
  refuses(R"({"users": []})", "has no 'user_data'");
  refuses(R"({"user_data": {}})", "no samples");
  refuses(R"({"user_data": [1]})", "is a list");
  const std::string good = of_user(R"({"x": [[1, 2], [3, 4]], "y": [1, 2]})");
  for (std::size_t cut = 0; cut < good.size(); ++cut) refuses(good.substr(0, cut), "JSON");
  refuses(of_user(R"({"x": [[1, 2], [3]], "y": [1, 2]})"),
          "user 'u', x of sample 2 has 1 numbers, and samples before it have 2");
  refuses(of_user(R"({"x": [[1], [3, 4]], "y": [1, 2]})"), "more than 1 numbers");
  refuses(of_user(R"({"x": [[1], [3]], "y": [1]})"), "user 'u': 2 samples in x and 1 in y");
  refuses(of_user(R"({"x": [[1], ["a"]], "y": [1, 2]})"), "'u', x of sample 2 is 'a'; x has to be");
  refuses(of_user(R"({"x": [[1], 5], "y": [1, 2]})"), "is a number");
  refuses(of_user(R"({"x": [[[1]]], "y": [1]})"), "is a list");
  refuses(of_user(R"({"x": [[null]], "y": [1]})"), "is null");
  refuses(of_user(R"({"x": [{"a": 1}], "y": [1]})"), "is an object");
  refuses(of_user(R"({"x": 5, "y": [1]})"), "is a number");
  refuses(of_user(R"({"x": [[1], [2]], "y": [1, "a"]})"), "y of sample 2 is a text");
  refuses(of_user(R"({"x": [[1], [2]], "y": ["a", 1]})"), "y of sample 2 is a number among texts");
  refuses(of_user(R"({"x": [[1]], "y": [[1]]})"), "y of sample 1 is a list");
  refuses(R"({"user_data": {" ": {"x": [[1]], "y": [1]}}})", "names no user");
}

}  // namespace
}  // namespace affpcl
