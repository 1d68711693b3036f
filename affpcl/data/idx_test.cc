#include "affpcl/data/idx.h"

#include "affpcl/data/bytes_test.h"
#include "affpcl/data/file_test.h"

namespace affpcl {
namespace {

using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

class Idx : public FileTest {
 protected:
  static std::string idx(int type, const std::vector<std::uint32_t>& dims,
                         const std::string& data) {
    std::string b{'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
    for (std::uint32_t d : dims) b += bytes_of(d, true);
    return b + data;
  }
  DataTable read(const std::string& bytes) const {
    write(bytes);
    return read_table(path);
  }
  void refuses(const std::string& bytes, const std::string& what) const {
    refused([&] { read(bytes); }, what);
  }
};

TEST_F(Idx, ImagesAreFlattenedAndLabelsAreAColumn) {
  const DataTable images = read(idx(0x08, {2, 2, 2}, "\x01\x02\x03\xff\x05\x06\x07\x08"));
  EXPECT_EQ(images.rows, 2);
  EXPECT_EQ(images.names(), (Names{"px0", "px1", "px2", "px3"}));
  EXPECT_EQ(images.numbers("px3"), (Numbers{255, 8}));
  EXPECT_EQ(table_header(path), images.names());
  const DataTable labels = read(idx(0x08, {3}, "\x07\x01\x02"));
  EXPECT_EQ(labels.names(), Names{"label"});
  EXPECT_EQ(labels.numbers("label"), (Numbers{7, 1, 2}));
}

TEST_F(Idx, EveryType) {
  EXPECT_EQ(read(idx(0x09, {1}, "\xff")).numbers("label"), Numbers{-1});
  EXPECT_EQ(read(idx(0x0B, {1}, bytes_of<std::int16_t>(-300, true))).numbers("label"),
            Numbers{-300});
  EXPECT_EQ(read(idx(0x0C, {1}, bytes_of<std::int32_t>(1 << 20, true))).numbers("label"),
            Numbers{1 << 20});
  EXPECT_EQ(read(idx(0x0D, {1}, bytes_of(1.5f, true))).numbers("label"), Numbers{1.5});
  EXPECT_EQ(read(idx(0x0E, {1}, bytes_of(0.1, true))).numbers("label"), Numbers{0.1});
}

TEST_F(Idx, TrustsNoSize) {
  refuses(idx(0x08, {3, 2}, "12345"), "3 rows of 2 bytes are announced, and 5 bytes are there");
  refuses(idx(0x0E, {4'294'967'295u}, "12345"), "are announced");
  refuses(idx(0x08, {1, 4'294'967'295u, 4'294'967'295u}, "12345"), "more than 50000");
  refuses(idx(0x08, {0, 3}, ""), "has no rows");
  refuses(idx(0x08, {3, 0}, "123"), "are announced");
  refuses(idx(0x08, {3, 2}, "").substr(0, 7), "before its dimensions do");
}

class IdxName : public FileTest {
 protected:
  IdxName() : FileTest("-idx1-ubyte") {}
};

TEST_F(IdxName, AWrongBeginningIsSaid) {
  write("a,b\n1,2\n");
  refused([&] { read_table(path); }, "does not begin as an idx file does");
  write("");
  refused([&] { read_table(path); }, "does not begin as an idx file does");
  EXPECT_TRUE(has_table_ending(path));
}

}  // namespace
}  // namespace affpcl
