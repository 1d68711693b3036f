// A table that ranks read together is the one that a process alone reads.
#include "affpcl/table/shared_tables.h"

#include <fmt/format.h>

#include <mutex>

#include "affpcl/data/file_test.h"
#include "tests/ranks.h"

namespace affpcl {
namespace {

// Everything that is said of a column and its rows, in words.
std::string column_text(const Column& c, bool rows_only = false) {
  std::string text;
  if (!rows_only)
    text = fmt::format("{} {} missing {} levels", c.name,
                       c.type == Column::Type::kText ? "text" : "number", c.missing);
  if (!rows_only)
    for (const std::string& l : c.levels) text += "|" + l;
  for (std::int32_t k : c.codes) text += fmt::format(" {}", k);
  for (double v : c.numbers) text += fmt::format(" {}", v);
  return text;
}

class SharedTables : public FileTest {
 protected:
  std::string shared(const std::vector<std::string>& files, const TableOptions& options,
                     int ranks) const {
    std::vector<Tables> parts(static_cast<std::size_t>(ranks));
    std::string refused;
    std::mutex mutex;
    Ranks::run(ranks, [&](Processes& p) {
      try {
        parts[static_cast<std::size_t>(p.rank())] =
            read_shared(files, tables_header(files, {}), {}, options, p);
      } catch (const BadInput& e) {
        const std::lock_guard lock(mutex);
        if (!refused.empty() && refused != e.what()) ADD_FAILURE() << refused << e.what();
        refused = e.what();
      }
    });
    if (!refused.empty()) return refused;
    std::string text;
    for (std::size_t c = 0; c < parts[0].columns.size(); ++c) {
      text += column_text(parts[0].columns[c]);
      for (std::size_t r = 1; r < parts.size(); ++r) text += column_text(parts[r].columns[c], true);
      text += "\n";
    }
    for (const Tables& t : parts)
      for (std::size_t r = 0; r < t.rows; ++r) {
        const std::size_t part = t.part_of(r);
        text += fmt::format("{}:{} ", t.parts[part].path,
                            t.parts[part].line(static_cast<std::int64_t>(r - t.first[part])));
      }
    return text;
  }
  void same(const std::vector<std::string>& files, const TableOptions& options = {}) const {
    const std::string want = shared(files, options, 1);
    for (int ranks : {2, 3, 5, 8}) EXPECT_EQ(shared(files, options, ranks), want) << ranks;
  }
};

TEST_F(SharedTables, OneFile) {
  std::string text = "\xEF\xBB\xBF\nagent,number,late,\"te\nxt\",blank\r\n";
  for (int r = 0; r < 40; ++r)
    text +=
        fmt::format("{},{},{},\"{}\n{}\",{}{}", 7 - r % 5, r == 11 ? "" : fmt::to_string(r / 8.),
                    r < 33 ? fmt::format("{}.50", r % 3) : "text", "ab"[r % 2], r / 9,
                    r < 30 ? "" : "NA", r % 6 == 0 ? "\r\n\n" : "\n");
  write(text);
  same({path});
  same({path}, {.columns = {"agent", "late"}, .text = {"agent"}});
  const std::string whole = shared({path}, {}, 1);
  EXPECT_NE(whole.find("late text missing 0 levels|0.50|1.50|2.50|text"), std::string::npos)
      << whole;
}

TEST_F(SharedTables, FewerRowsThanRanks) {
  write("agent,x\na,1\nb,text");
  same({path});
  write("agent,x\n");
  EXPECT_EQ(shared({path}, {}, 3), path + " has a header but no rows");
}

TEST_F(SharedTables, AFilePerAgent) {
  std::vector<std::string> files;
  for (int f = 0; f < 6; ++f) {
    files.push_back(fmt::format("{}/{}.csv", folder, f));
    std::ofstream(files.back()) << "y,x,colour\n1," << (f == 4 ? "text" : "1.50") << ",red" << f % 3
                                << "\n2,,\n";
  }
  same(files);
  std::ofstream(files[3]) << "y,x,colour\n1,2\n";
  std::ofstream(files[5]) << "y,x\n1,2\n";
  same(files);  // refused for the same reason
  EXPECT_NE(shared(files, {}, 8).find("3.csv, line 2: 2 fields"), std::string::npos);
}

TEST_F(SharedTables, TheFirstBadLineOfTheFile) {
  std::string text = "agent,x\n";
  for (int r = 0; r < 100; ++r) text += r == 70 || r == 90 ? "a,1,2\n" : "a,\"1\n\"\n";
  write(text);
  same({path});
  EXPECT_NE(shared({path}, {}, 8).find("line 142: 3 fields"), std::string::npos)
      << shared({path}, {}, 8);
}

}  // namespace
}  // namespace affpcl
