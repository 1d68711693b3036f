#include "affpcl/data/npy.h"

#include "affpcl/data/bytes_test.h"
#include "affpcl/data/file_test.h"

namespace affpcl {
namespace {

using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

class Npy : public FileTest {
 protected:
  DataTable read(const std::string& bytes, const TableOptions& options = {}) const {
    write(bytes);
    return read_table(path, options);
  }
  void refuses(const std::string& bytes, const std::string& what) const {
    refused([&] { read(bytes); }, what);
  }
  std::string stem() const { return path.substr(path.rfind('/') + 1); }
};

template <class T>
std::string values(std::initializer_list<T> list, bool big = false) {
  std::string all;
  for (T v : list) all += bytes_of(v, big);
  return all;
}

TEST_F(Npy, EveryTypeOfNumberInBothOrdersOfBytes) {
  const auto column = [&](const std::string& type, const std::string& data) {
    return read(npy_bytes("'" + type + "'", "(2,)", data)).numbers(stem());
  };
  for (const bool big : {false, true}) {
    const std::string o = big ? ">" : "<";
    EXPECT_EQ(column(o + "f4", values<float>({1.5f, -2}, big)), (Numbers{1.5, -2}));
    EXPECT_EQ(column(o + "f8", values<double>({0.1, -2e300}, big)), (Numbers{0.1, -2e300}));
    EXPECT_EQ(column(o + "i2", values<std::int16_t>({-300, 2}, big)), (Numbers{-300, 2}));
    EXPECT_EQ(column(o + "i4", values<std::int32_t>({-70'000, 2}, big)), (Numbers{-70'000, 2}));
    EXPECT_EQ(column(o + "i8", values<std::int64_t>({-5'000'000'000, 2}, big)), (Numbers{-5e9, 2}));
    EXPECT_EQ(column(o + "u2", values<std::uint16_t>({65'535, 2}, big)), (Numbers{65'535, 2}));
    EXPECT_EQ(column(o + "u4", values<std::uint32_t>({4'000'000'000, 2}, big)), (Numbers{4e9, 2}));
    EXPECT_EQ(column(o + "u8", values<std::uint64_t>({1u << 31, 2}, big)),
              (Numbers{2147483648.0, 2}));
  }
  EXPECT_EQ(column("|i1", values<std::int8_t>({-3, 2})), (Numbers{-3, 2}));
  EXPECT_EQ(column("|u1", values<std::uint8_t>({255, 2})), (Numbers{255, 2}));
  EXPECT_EQ(column("|b1", values<std::uint8_t>({1, 0})), (Numbers{1, 0}));
}

TEST_F(Npy, RowsAndColumnsInBothOrders) {
  const std::string by_row = values<double>({1, 2, 3, 4, 5, 6});
  const DataTable c = read(npy_bytes("'<f8'", "(3, 2)", by_row));
  EXPECT_EQ(c.rows, 3);
  EXPECT_EQ(c.names(), (Names{"x0", "x1"}));
  EXPECT_EQ(c.numbers("x0"), (Numbers{1, 3, 5}));
  EXPECT_EQ(c.numbers("x1"), (Numbers{2, 4, 6}));
  const DataTable f = read(npy_bytes("'<f8'", "(3, 2)", by_row, "True"));
  EXPECT_EQ(f.numbers("x0"), (Numbers{1, 2, 3}));
  EXPECT_EQ(f.numbers("x1"), (Numbers{4, 5, 6}));
  EXPECT_EQ(table_header(path), (Names{"x0", "x1"}));
}

TEST_F(Npy, MoreRowsThanABlock) {
  for (const char* fortran : {"False", "True"}) {
    std::string data;
    const bool by_column = fortran[0] == 'T';
    for (int i = 0; i < 300'000; ++i)
      data += bytes_of(by_column ? i % 100'000 * 3 + i / 100'000 : i, false);
    const DataTable t = read(npy_bytes("'<i4'", "(100000, 3)", data, fortran));
    for (std::size_t r = 0; r < 100'000; ++r)
      for (std::size_t c = 0; c < 3; ++c)
        ASSERT_EQ(t.columns[c].numbers[r], static_cast<double>(3 * r + c));
    EXPECT_EQ(t.columns[0].numbers.capacity(), 100'000u);
  }
}

TEST_F(Npy, RecordsHaveNamesAndTexts) {
  std::string data;
  for (int r = 0; r < 2; ++r) {
    data += bytes_of(r + 0.5, false) + std::string(3, '!');
    data += bytes_of(U'ä', false) + bytes_of(r == 0 ? U'😀' : U'\0', false);
    data += r == 0 ? std::string("ab", 2) : std::string("b\0", 2);
  }
  const std::string descr = "[('age', '<f8'), ('', '|V3'), ('colour', '<U2'), (\"it's\", '|S2')]";
  const DataTable t = read(npy_bytes(descr, "(2,)", data));
  EXPECT_EQ(t.names(), (Names{"age", "colour", "it's"}));
  EXPECT_EQ(t.numbers("age"), (Numbers{0.5, 1.5}));
  EXPECT_EQ(t.column("colour").levels, (Names{"ä😀", "ä"}));
  EXPECT_EQ(t.column("it's").levels, (Names{"ab", "b"}));
  EXPECT_EQ(t.column("it's").codes, (std::vector<std::int32_t>{0, 1}));
  const DataTable some = read(npy_bytes(descr, "(2,)", data), {.columns = {"colour", "age"}});
  EXPECT_EQ(some.names(), (Names{"colour", "age"}));
  refused([&] { read(npy_bytes(descr, "(2,)", data), {.columns = {"colur"}}); },
          "has no column 'colur'; did you mean 'colour'?");
}

TEST_F(Npy, NaNIsMissingAndAgentsAreTexts) {
  const std::string nan = values<double>({1, NAN, 3, 1});
  const DataTable t = read(npy_bytes("'<f8'", "(2, 2)", nan), {.text = {"x0"}});
  EXPECT_EQ(t.column("x1").missing, 2 - 1);
  EXPECT_EQ(t.column("x0").levels, (Names{"1", "3"}));
  const DataTable u = read(npy_bytes("'<f8'", "(2, 2)", nan), {.text = {"x1"}});
  EXPECT_EQ(u.column("x1").codes, (std::vector<std::int32_t>{-1, 0}));
  EXPECT_EQ(u.column("x1").missing, 1);
}

TEST_F(Npy, AllVersionsOfTheHeader) {
  const std::string dict = "{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }";
  for (int version : {1, 2, 3})
    EXPECT_EQ(read(npy_bytes(dict, bytes_of(7.0, false), version)).rows, 1);
  refuses(npy_bytes(dict, bytes_of(7.0, false), 4), "version 4");
}

TEST_F(Npy, SaysWhatCannotBeRead) {
  const std::string eight(8, '\0');
  refuses(npy_bytes("'|O'", "(1,)", eight), "holds Python objects");
  refuses(npy_bytes("[('a', '<f8'), ('b', '|O')]", "(1,)", eight), "holds Python objects");
  refuses(npy_bytes("'<f2'", "(1,)", eight), "has the type '<f2'; f4, f8");
  refuses(npy_bytes("'<c8'", "(1,)", eight), "has the type '<c8'");
  refuses(npy_bytes("'<M8[ns]'", "(1,)", eight), "has the type '<M8[ns]'");
  refuses(npy_bytes("'<U0'", "(1,)", eight), "has the type '<U0'");
  refuses(npy_bytes("'|V8'", "(1,)", eight), "no column");
  refuses(npy_bytes("[('a', '<f4', (2,))]", "(1,)", eight), "a field of several values");
  refuses(npy_bytes("'<f8'", "()", eight), "has 0 dimensions");
  refuses(npy_bytes("'<f8'", "(1, 1, 1)", eight), "has 3 dimensions");
  refuses(npy_bytes("'<f8'", "(0,)", ""), "has no rows");
  refuses(npy_bytes("[('a', '<f4'), ('a', '<f4')]", "(1,)", eight), "both called 'a'");
  refuses(npy_bytes("'<f8'", "(2,)", values<double>({1, INFINITY})),
          ", row 2, column '" + stem() + "': 'inf' is not finite");
  refuses(npy_bytes("'<i8'", "(1,)", values<std::int64_t>({(1LL << 53) + 2})), "above 2^53");
  refuses(npy_bytes("'<U1'", "(1,)", values<std::uint32_t>({0x110000})), "Unicode");
}

TEST_F(Npy, TrustsNoSize) {
  refuses(npy_bytes("'<f8'", "(2,)", std::string(15, '\0')),
          "2 rows of 8 bytes are announced, and 15 bytes are there");
  refuses(npy_bytes("'<f8'", "(18446744073709551615,)", std::string(16, '\0')), "are announced");
  refuses(npy_bytes("'<f8'", "(2305843009213693952, 8)", std::string(16, '\0')), "are announced");
  refuses(npy_bytes("'<f8'", "(99999999999999999999999,)", "12345678"), "damaged");
  refuses(npy_bytes("'<f8'", "(1, 2305843009213693952)", "12345678"), "columns, more than 50000");
  refuses(npy_bytes("'<f8'", "(-1,)", "12345678"), "damaged");
  refuses(npy_bytes("'<U999999999999'", "(1,)", "12345678"), "has the type");
  refuses(npy_bytes("'<U999999999'", "(1,)", "12345678"), "are announced");
  refuses(std::string("\x93NUMPY\x02\0\xff\xff\xff\xff{}", 14), "a header of 4294967295 bytes");
  refuses("\x93NUMPY", "cut short");
  refuses(npy_bytes("{'descr': '<f8'}", ""), "does not say");
  refuses(npy_bytes("(((((((((((((((((((((((((((", ""), "no NumPy header");
  refuses(npy_bytes("{'descr': '<f8", ""), "no NumPy header");
  refuses(npy_bytes("", ""), "no NumPy header");
}

}  // namespace
}  // namespace affpcl
