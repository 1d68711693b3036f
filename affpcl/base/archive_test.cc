#include "affpcl/base/archive.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

struct Point {
  std::int64_t index = 0;
  std::vector<double> at;
  bool operator==(const Point&) const = default;
};

struct World {
  bool open = false;
  std::int64_t count = 0;
  double size = 0;
  std::string name;
  std::vector<double> none, some;
  std::vector<Point> points;
  bool operator==(const World&) const = default;
};

void fields(Archive& archive, World& w) {
  archive("open", w.open);
  archive("count", w.count, 0, 9);
  archive("size", w.size);
  archive("name", w.name);
  archive("none", w.none);
  archive("some", w.some);
  archive("points", w.points, [](Archive& a, Point& p) {
    a("index", p.index);
    a("at", p.at);
  });
}

std::vector<std::byte> written(World w) {
  Archive archive("world", 3);
  fields(archive, w);
  return archive.take();
}

World read(std::span<const std::byte> bytes, std::string_view kind = "world", int version = 3) {
  Archive archive(kind, version, bytes);
  World w;
  fields(archive, w);
  archive.finish();
  return w;
}

// Why the bytes are refused; empty where they are not.
std::string complaint(std::span<const std::byte> bytes, std::string_view kind = "world",
                      int version = 3) {
  try {
    read(bytes, kind, version);
  } catch (const BadInput& e) {
    return e.what();
  }
  return "";
}

World example() {
  return {true, 7, -0.5, "näme", {}, {1, HUGE_VAL, -0.0}, {{-1, {2}}, {INT64_MAX, {}}}};
}

TEST(Archive, BringsBackWhatWasWritten) { EXPECT_EQ(read(written(example())), example()); }

TEST(Archive, RefusesAnotherKindAndVersion) {
  const std::vector<std::byte> bytes = written(example());
  EXPECT_NE(complaint(bytes, "moon").find("a 'world' where a 'moon'"), std::string::npos);
  EXPECT_NE(complaint(bytes, "world", 4).find("version 3, and this affpcl reads version 4"),
            std::string::npos);
}

TEST(Archive, RefusesWhatIsOutOfRange) {
  World w = example();
  w.count = 10;
  EXPECT_EQ(complaint(written(w)), "its field 'count' is 10, not between 0 and 9");
}

TEST(Archive, RefusesAnyCutAndAnyExtraByte) {
  std::vector<std::byte> bytes = written(example());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    ASSERT_NE(complaint(std::span(bytes).first(size)), "") << size;
  bytes.push_back({});
  EXPECT_NE(complaint(bytes).find("1 bytes follow"), std::string::npos);
}

// Whatever a byte is changed to, the reader refuses or returns values of the same sizes: bytes of
// heads are never accepted.
TEST(Archive, AChangedByteIsRefusedOrAValue) {
  const std::vector<std::byte> bytes = written(example());
  const World want = example();
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (int value = 0; value < 256; ++value) {
      std::vector<std::byte> forged = bytes;
      forged[at] = static_cast<std::byte>(value);
      try {
        const World w = read(forged);
        ASSERT_TRUE(w.name.size() == want.name.size() && w.some.size() == want.some.size() &&
                    w.none.empty() && w.points.size() == 2 && w.points[0].at.size() == 1)
            << "byte " << at;
      } catch (const BadInput&) {
      }
    }
}

}  // namespace
}  // namespace affpcl
