// Named, versioned fields as bytes: everything that is saved in a file or sent between ranks as
// state. One function lists the fields of a struct, for writing and for reading:
//
//   void fields(Archive& archive, Record& r) {
//     archive("mse", r.mse);
//     archive("curve", r.curve);
//   }
//
// A reader trusts no byte: names, types and sizes are checked before they are used, and whatever
// does not fit is refused by BadInput.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affpcl {

class Archive {
 public:
  using Integer = std::int64_t;
  static constexpr Integer kLeast = std::numeric_limits<Integer>::min(),
                           kMost = std::numeric_limits<Integer>::max();

  Archive(std::string_view kind, Integer version);  // to write
  // To read; BadInput where the bytes are of another kind or version. They must outlive it.
  Archive(std::string_view kind, Integer version, std::span<const std::byte> bytes);

  bool reading() const { return reading_; }

  void operator()(std::string_view name, bool& x);
  // What is read lies between `least` and `most`.
  void operator()(std::string_view name, Integer& x, Integer least = kLeast, Integer most = kMost);
  void operator()(std::string_view name, double& x);
  void operator()(std::string_view name, std::string& x);
  void operator()(std::string_view name, std::vector<double>& x);
  // A list of items with fields of their own: fields(archive, item).
  template <class Item, class Fields>
  void operator()(std::string_view name, std::vector<Item>& items, Fields fields) {
    Integer count = std::ssize(items);
    list(name, count);
    if (reading_) items.assign(static_cast<std::size_t>(count), Item{});
    for (Item& item : items) fields(*this, item);
  }

  std::vector<std::byte> take() { return std::move(written_); }  // what has been written
  void finish() const;                                           // BadInput unless all is read

 private:
  enum class Type : std::uint8_t { kBool, kInteger, kNumber, kString, kNumbers, kList };

  void head(std::string_view name, Type type, std::uint64_t& bytes);
  void fixed(std::string_view name, Type type, void* value, std::uint64_t bytes);
  void list(std::string_view name, Integer& count);
  void put(const void* from, std::size_t bytes);
  void get(void* to, std::size_t bytes);
  [[noreturn]] static void refuse(std::string_view name, std::string_view why);

  bool reading_;
  std::vector<std::byte> written_;
  std::span<const std::byte> rest_;  // not read yet
};

}  // namespace affpcl
