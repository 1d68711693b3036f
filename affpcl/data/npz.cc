#include "affpcl/data/npz.h"

#include <fmt/format.h>

#ifdef AFFPCL_ZIP
#include <zip.h>
#endif

#include <memory>

#include "affpcl/base/error.h"
#include "affpcl/data/columns.h"
#include "affpcl/data/input_file.h"
#include "affpcl/data/npy.h"

namespace affpcl {

#ifdef AFFPCL_ZIP

namespace {

// Deflate cannot do better than 1032 to 1: a size beyond that is a lie.
constexpr std::uint64_t kMostPacked = 1100;

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};

// One array, open behind its header.
struct Entry {
  std::string where;
  std::unique_ptr<zip_file_t, Discard> file;
  BinaryLayout layout;

  std::size_t read(char* to, std::size_t bytes) const {
    std::size_t got = 0;
    while (got < bytes) {
      const zip_int64_t n = zip_fread(file.get(), to + got, bytes - got);
      if (n < 0)
        throw BadInput(fmt::format("{} is damaged: {}", where, zip_file_strerror(file.get())));
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    }
    return got;
  }
};

class Archive {
 public:
  explicit Archive(const std::string& path) : path_(path), file_(path) {
    int code = 0;
    zip_.reset(zip_open(file_.place().c_str(), ZIP_RDONLY, &code));
    if (!zip_) {
      zip_error_t error;
      zip_error_init_with_code(&error, code);
      const std::string why = zip_error_strerror(&error);
      zip_error_fini(&error);
      throw BadInput(fmt::format("{} cannot be read as an .npz file: {}", path, why));
    }
    if (size() == 0) throw BadInput(fmt::format("{} holds no array", path));
  }

  std::uint64_t size() const {
    return static_cast<std::uint64_t>(zip_get_num_entries(zip_.get(), 0));
  }

  Entry open(std::uint64_t index) const {
    zip_stat_t status;
    zip_stat_init(&status);
    if (zip_stat_index(zip_.get(), index, 0, &status) != 0) fail(path_);
    std::string name = status.name;
    if (!name.ends_with(".npy"))
      throw BadInput(
          fmt::format("{} holds '{}', which is not an array that NumPy saved", path_, name));
    name.resize(name.size() - 4);
    Entry entry;
    entry.where = fmt::format("{}, array '{}'", path_, name);
    if (status.size > kMostPacked * (status.comp_size + 1))
      throw BadInput(fmt::format("{} is damaged: {} bytes cannot hold {}", entry.where,
                                 status.comp_size, status.size));
    entry.file.reset(zip_fopen_index(zip_.get(), index, 0));
    if (!entry.file) fail(entry.where);
    entry.layout = npy_layout(entry.where, name, name, static_cast<std::int64_t>(status.size),
                              [&](char* to, std::size_t bytes) { return entry.read(to, bytes); });
    return entry;
  }

 private:
  [[noreturn]] void fail(const std::string& where) const {
    throw BadInput(fmt::format("{} is damaged: {}", where, zip_strerror(zip_.get())));
  }

  std::string path_;
  InputFile file_;  // says why it cannot be read, if so
  std::unique_ptr<zip_t, Discard> zip_;
};

std::vector<std::string> names_in(const std::string& path, const Archive& archive) {
  std::vector<std::string> names;
  const std::size_t rows = archive.open(0).layout.rows;
  for (std::uint64_t i = 0; i < archive.size(); ++i) {
    const Entry entry = archive.open(i);
    if (entry.layout.rows != rows)
      throw BadInput(
          fmt::format("{} has {} rows, and the first array has {}; all must have the same",
                      entry.where, entry.layout.rows, rows));
    for (std::string& name : field_names(entry.layout)) names.push_back(std::move(name));
    refuse_too_many_columns(path, names.size());
  }
  return names;
}

}  // namespace

std::vector<std::string> npz_header(const std::string& path) {
  return names_in(path, Archive(path));
}

DataTable read_npz(const std::string& path, const TableOptions& options) {
  const Archive archive(path);
  const std::vector<char> chosen = choose_columns(path, names_in(path, archive), options.columns);
  DataTable table;
  table.path = path;
  auto at = chosen.begin();
  for (std::uint64_t i = 0; i < archive.size(); ++i) {
    const Entry entry = archive.open(i);
    const auto end = at + static_cast<std::ptrdiff_t>(entry.layout.fields.size());
    read_binary(
        entry.layout, {at, end}, [&](char* to, std::size_t bytes) { return entry.read(to, bytes); },
        table);
    char more;  // the checksum is looked at when all is read
    if (entry.read(&more, 1) != 0)
      throw BadInput(fmt::format("{} is damaged: more bytes than its header says", entry.where));
    at = end;
  }
  return table;
}

#else

namespace {
[[noreturn]] void built_without(const std::string& path) {
  throw BadInput(fmt::format(
      "{} is an .npz file, and this affpcl was built without libzip; save its arrays as .npy files",
      path));
}
}  // namespace

std::vector<std::string> npz_header(const std::string& path) { built_without(path); }
DataTable read_npz(const std::string& path, const TableOptions&) { built_without(path); }

#endif

}  // namespace affpcl
