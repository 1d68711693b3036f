// Small files of every format, damaged at random: each gives a table or one sentence, never
// anything else. (Run it under the preset asan to see that it reads no byte that is not its own.)
#include <filesystem>
#include <random>

#include "affpcl/data/bytes_test.h"
#include "affpcl/data/file_test.h"
#include "affpcl/data/table.h"

namespace affpcl {
namespace {

constexpr int kMutations = 400;  // of each file

struct Sample {
  const char* ending;
  std::string bytes;
};

std::string doubles(int count) {
  std::string b;
  for (int i = 0; i < count; ++i) b += bytes_of(i * 0.5, false);
  return b;
}

// An archive of one stored array, x.npy.
std::string npz_sample() {
  const std::string array = npy_bytes("'<f8'", "(4, 2)", doubles(8));
  const auto crc = [&] {
    std::uint32_t c = ~0u;
    for (unsigned char byte : array) {
      c ^= byte;
      for (int k = 0; k < 8; ++k) c = (c >> 1) ^ (0xEDB88320u & -(c & 1));
    }
    return ~c;
  }();
  const auto u16 = [](int v) { return bytes_of(static_cast<std::uint16_t>(v), false); };
  const auto u32 = [](std::size_t v) { return bytes_of(static_cast<std::uint32_t>(v), false); };
  const std::string about = u16(20) + u16(0) + u16(0) + u32(0x00210000) + u32(crc) +
                            u32(array.size()) + u32(array.size()) + u16(5) + u16(0);
  const std::string local = u32(0x04034b50) + about + "x.npy" + array;
  const std::string central =
      u32(0x02014b50) + u16(20) + about + u16(0) + u16(0) + u16(0) + u32(0) + u32(0) + "x.npy";
  return local + central + u32(0x06054b50) + u16(0) + u16(0) + u16(1) + u16(1) +
         u32(central.size()) + u32(local.size()) + u16(0);
}

std::vector<Sample> samples() {
  const std::string records = "[('a', '<f8'), ('b', '<U2'), ('c', '|S3'), ('d', '>i4')]";
  std::string rows;
  for (int r = 0; r < 3; ++r)
    rows += doubles(1) + bytes_of(U'a', false) + bytes_of(U'é', false) + "xyz" + bytes_of(r, true);
  return {
      {".csv", "agent,x,\"y \"\"z\"\"\"\nann,1,0.5\r\nbob, -2 ,\n\"a,\nb\",+3e1,?\n"},
      {".csv", "sep=;\n# by us\nagent;x;y\nann;1,5;0,5\nbob;-2;2026-11-30\nM\xFCller;1.234,5;-\n"},
      {".csv", std::string("\xFF\xFEx\0,\0y\0\n\0001\0,\0002\0\n\0", 18)},
      {".npy", npy_bytes("'<f8'", "(4, 3)", doubles(12))},
      {".npy", npy_bytes("'<f8'", "(3, 4)", doubles(12), "True")},
      {".npy", npy_bytes(records, "(3,)", rows)},
      {".npz", npz_sample()},
      {".idx", std::string("\0\0\x08\x02\0\0\0\x03\0\0\0\x02", 12) + "abcdef"},
      {".svm", "+1 qid:1 1:0.5 3:-2 # x\n-1 qid:2 2:1e3\n0 qid:2\n"},
      {".json",
       R"({"users": ["a", "b"], "num_samples": [2, 1], "user_data":
           {"a": {"x": [[1, 2.5], [3, -4]], "y": [1, 0]}, "b": {"x": [[5, 6]], "y": [1]}}})"},
  };
}

std::string mutated(std::string bytes, std::mt19937& draw) {
  static constexpr char kLiked[] = "\0\xff\x7f\x80,\"'\n:0189-eE.[]{}()#";  // with its last zero
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : draw() % n; };
  for (std::size_t times = 1 + below(3); times > 0; --times) {
    const std::size_t at = below(bytes.size()), length = 1 + below(8);
    const char c = below(2) == 0 ? kLiked[below(sizeof kLiked)] : static_cast<char>(draw());
    switch (below(5)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, length, c);
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      default:
        if (!bytes.empty()) bytes[at] = c;
    }
  }
  return bytes;
}

class Mutation : public FileTest {};

TEST_F(Mutation, GivesATableOrOneSentence) {
  std::mt19937 draw(7);
  for (const Sample& sample : samples()) {
    const std::string file = path + sample.ending;
    int tables = 0, sentences = 0;
    for (int m = 0; m <= kMutations; ++m) {
      const std::string bytes = m == 0 ? sample.bytes : mutated(sample.bytes, draw);
      std::ofstream(file, std::ios::binary) << bytes;
      try {
        const DataTable t = read_table(file);
        ++tables;
        ASSERT_EQ(t.names(), table_header(file));
        ASSERT_GT(t.rows, 0);
        for (const Column& c : t.columns)
          ASSERT_EQ(static_cast<std::int64_t>(c.numbers.size() + c.codes.size()), t.rows);
      } catch (const BadInput& e) {
        const std::string said = e.what();
        EXPECT_NE(m, 0) << said;
        EXPECT_NE(said.find(file), std::string::npos) << said;
        EXPECT_LE(std::count(said.begin(), said.end(), '\n'), 11) << said;
        EXPECT_TRUE(said.find('\n') == std::string::npos || said.find(" problems\n") < 4) << said;
        const auto lines = static_cast<std::size_t>(1 + std::count(said.begin(), said.end(), '\n'));
        EXPECT_LT(said.size(), lines * (file.size() + 300)) << said;
        ++sentences;
      }
    }
    EXPECT_GT(tables, 1) << sample.ending;
    EXPECT_GT(sentences, kMutations / 10) << sample.ending;
  }
}

}  // namespace
}  // namespace affpcl
