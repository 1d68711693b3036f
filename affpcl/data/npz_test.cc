#include "affpcl/data/npz.h"

#include <zip.h>

#include "affpcl/data/bytes_test.h"
#include "affpcl/data/file_test.h"

namespace affpcl {
namespace {

using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

class Npz : public FileTest {
 protected:
  Npz() : FileTest(".npz") {}

  void pack(const std::vector<std::pair<std::string, std::string>>& entries, bool deflate) const {
    std::remove(path.c_str());
    int code = 0;
    zip_t* const zip = zip_open(path.c_str(), ZIP_CREATE, &code);
    ASSERT_NE(zip, nullptr);
    for (const auto& [name, bytes] : entries) {
      const zip_int64_t at =
          zip_file_add(zip, name.c_str(), zip_source_buffer(zip, bytes.data(), bytes.size(), 0), 0);
      zip_set_file_compression(zip, static_cast<zip_uint64_t>(at),
                               deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    }
    ASSERT_EQ(zip_close(zip), 0);
  }
  void refuses(const std::vector<std::pair<std::string, std::string>>& entries,
               const std::string& what) const {
    pack(entries, true);
    refused([&] { read_table(path); }, what);
  }

  static std::string array(const std::string& shape, std::initializer_list<double> values) {
    std::string data;
    for (double v : values) data += bytes_of(v, false);
    return npy_bytes("'<f8'", shape, data);
  }
};

TEST_F(Npz, ArraysStandSideBySide) {
  for (const bool deflate : {false, true}) {
    pack({{"y.npy", array("(2,)", {1, 2})},
          {"img.npy", array("(2, 3)", {1, 2, 3, 4, 5, 6})},
          {"who.npy", npy_bytes("'|S1'", "(2,)", "ab")}},
         deflate);
    EXPECT_EQ(table_header(path), (Names{"y", "img0", "img1", "img2", "who"}));
    const DataTable t = read_table(path);
    EXPECT_EQ(t.rows, 2);
    EXPECT_EQ(t.names(), table_header(path));
    EXPECT_EQ(t.numbers("y"), (Numbers{1, 2}));
    EXPECT_EQ(t.numbers("img2"), (Numbers{3, 6}));
    EXPECT_EQ(t.column("who").levels, (Names{"a", "b"}));
    EXPECT_EQ(read_table(path, {.columns = {"who", "img1"}}).names(), (Names{"who", "img1"}));
  }
}

TEST_F(Npz, SaysWhatCannotBeRead) {
  refuses({{"x.npy", array("(2,)", {1, 2})}, {"y.npy", array("(3,)", {1, 2, 3})}},
          "array 'y' has 3 rows, and the first array has 2");
  refuses({{"x.npy", array("(2,)", {1, 2})}, {"notes.txt", "hello"}}, "holds 'notes.txt'");
  refuses({{"x.npy", "hello"}}, "array 'x' does not begin as a NumPy file does");
  refuses({{"x.npy", npy_bytes("'|O'", "(1,)", "12345678")}}, "array 'x' holds Python objects");
  refuses({{"x.npy", array("(4,)", {1, 2})}}, "array 'x' is cut short or damaged: 4 rows");
  refuses({{"a1.npy", array("(1,)", {1})}, {"a.npy", array("(1, 2)", {1, 2})}}, "both called 'a1'");
  write("hello, this is no archive");
  refused([&] { read_table(path); }, "cannot be read as an .npz file");
  write("");
  refused([&] { read_table(path); }, "cannot be read as an .npz file");
  std::remove(path.c_str());
  refused([&] { read_table(path); }, "No such file");
}

TEST_F(Npz, DamageIsNoticed) {
  for (const bool deflate : {false, true}) {
    pack({{"x.npy", array("(3,)", {1, 2, 3})}}, deflate);
    std::ifstream in(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const std::size_t middle = bytes.find(deflate ? "x.npy" : "   \n") + 8;
    bytes[middle] = static_cast<char>(bytes[middle] ^ 0x55);
    write(bytes);
    refused([&] { read_table(path); }, "array 'x'");
    write(bytes.substr(0, bytes.size() - 30));
    refused([&] { read_table(path); }, "cannot be read as an .npz file");
  }
}

}  // namespace
}  // namespace affpcl
