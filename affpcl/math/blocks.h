// Agents live in blocks of 64. A quantity of a block is double[rows][64]: agents fastest, lanes
// beyond the last agent padded: they hold arbitrary values and need not be written. docs/decisions/002-blocks.md has the measurement behind the layout.
//
// Memory is declared (Layout), the runtime owns it (Store), algorithms see one block at a time
// (Agents, Centre, Mean). So slicing, saving, hashing and sharding are written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affpcl {

inline constexpr int kLanes = 64;    // agents in a block
inline constexpr int kLaneStep = 8;  // of which only so many at a time are worked on
inline constexpr int kLeaf = 256;    // agents in a leaf of the sum (sum_tree.h): four blocks

struct Lanes {  // which agents a block holds
  std::int64_t first;
  int count;  // at most kLanes
};

inline std::int64_t blocks_of(std::int64_t agents) { return (agents + kLanes - 1) / kLanes; }
inline std::int64_t leaves_of(std::int64_t agents) { return (agents + kLeaf - 1) / kLeaf; }
inline Lanes lanes_of(std::int64_t block, std::int64_t agents) {
  const std::int64_t first = block * kLanes;
  return {first, static_cast<int>(agents - first < kLanes ? agents - first : kLanes)};
}

inline int lanes_to_write(int count) { return (count + kLaneStep - 1) / kLaneStep * kLaneStep; }

// rows x width numbers, read only. Width 1 is one column that all agents of the block share (x^c,
// theta^c).
struct In {
  const double* p = nullptr;
  int rows = 0;
  int width = kLanes;
  const double* row(int r) const { return p + static_cast<std::ptrdiff_t>(r) * width; }
  double at(int r, int lane) const { return row(r)[width == 1 ? 0 : lane]; }
};

struct Out {  // rows x 64 numbers to write
  double* p = nullptr;
  int rows = 0;
  int lanes = kLanes;  // that are written, a multiple of 8: few agents need no work on the rest
  double* row(int r) const { return p + static_cast<std::ptrdiff_t>(r) * kLanes; }
  operator In() const { return {p, rows, kLanes}; }  // NOLINT: what was written can be read
};

struct Field {  // where a declared quantity lives
  int at = 0, rows = 0;
};

// The list of what a thing keeps per agent, or once at the centre.
class Layout {
 public:
  // below > 0: an index, a whole number from 0 to below - 1. A saved state is refused unless it is.
  Field add(std::string_view name, int rows, int below = 0);
  int rows() const { return rows_; }
  struct Named {
    std::string name;
    Field field;
    int below = 0;
  };
  const std::vector<Named>& fields() const { return fields_; }

 private:
  std::vector<Named> fields_;
  int rows_ = 0;
};

struct Product {  // a summed psi g': p x d numbers, row major
  int at = 0, p = 0, d = 0;
};

// What one round adds up over agents: plain rows and products psi g'.
class SumLayout {
 public:
  Field add(std::string_view name, int rows) { return layout_.add(name, rows); }
  Product add_product(std::string_view name, int p, int d) {
    return {layout_.add(name, p * d).at, p, d};
  }
  int size() const { return layout_.rows(); }
  const Layout& layout() const { return layout_; }

 private:
  Layout layout_;
};

struct Agents {  // the declared state of one block
  Lanes lanes{};
  double* p = nullptr;
  Out operator[](Field f) const {
    return {p + static_cast<std::ptrdiff_t>(f.at) * kLanes, f.rows, lanes_to_write(lanes.count)};
  }
};

struct Centre {  // the declared central state; one column
  double* p = nullptr;
  In operator[](Field f) const { return {p + f.at, f.rows, 1}; }
  std::span<double> mutate(Field f) const { return {p + f.at, static_cast<std::size_t>(f.rows)}; }
};

struct Mean {  // what the round's sum came to, divided by the number of agents
  const double* p = nullptr;
  In operator[](Field f) const { return {p + f.at, f.rows, 1}; }
  const double* operator[](Product m) const { return p + m.at; }
};

// Zeroed, 64-byte aligned doubles.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size);
  double* data() const { return p_.get(); }
  std::size_t size() const { return size_; }
  std::span<double> span() const { return {p_.get(), size_}; }

 private:
  struct Free {
    void operator()(double* p) const;
  };
  std::unique_ptr<double[], Free> p_;
  std::size_t size_ = 0;
};

// Blocks of all agents for one Layout, or of those that a process holds.
class Store {
 public:
  Store() = default;
  Store(int rows, std::int64_t agents);
  Store(int rows, std::int64_t agents, std::int64_t first_block, std::int64_t last_block);
  Agents block(std::int64_t b) const {  // by its number among all
    return {lanes_of(b, agents_), data_.data() + (b - first_) * rows_ * kLanes};
  }
  void keep(std::int64_t first_block, std::int64_t last_block);  // and give the rest back
  std::span<double> all() const { return data_.span(); }

 private:
  int rows_ = 0;
  std::int64_t agents_ = 0, first_ = 0;
  Buffer data_;
};

// Memory for intermediate rows, handed out like a stack and given back all at once. It grows during
// the first rounds and then allocates no more.
class Scratch {
 public:
  Out rows(int n) {  // n x 64, not cleared
    return {numbers(static_cast<std::size_t>(n) * kLanes), n, lanes_};
  }
  double* numbers(std::size_t n) {  // n, not cleared
    n = (n + 7) / 8 * 8;            // keeps every piece on a 64-byte line
    if (chunk_ == chunks_.size() || used_ + n > chunks_[chunk_].size()) next_chunk(n);
    double* p = chunks_[chunk_].data() + used_;
    used_ += n;
    return p;
  }
  // Takes back at its end what was handed out since its beginning.
  class Frame {
   public:
    explicit Frame(Scratch& scratch)
        : scratch_(scratch), chunk_(scratch.chunk_), used_(scratch.used_) {}
    ~Frame() { scratch_.chunk_ = chunk_, scratch_.used_ = used_; }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    std::size_t chunk_, used_;
  };
  // Takes all back; from now on rows are for a block of so many agents.
  void clear(int agents = kLanes) { chunk_ = 0, used_ = 0, lanes_ = lanes_to_write(agents); }

 private:
  void next_chunk(std::size_t n);  // one that has room for n

  std::vector<Buffer> chunks_;
  std::size_t chunk_ = 0, used_ = 0;
  int lanes_ = kLanes;
};

// Row arithmetic (rows.cc). An In of width 1 is spread over the lanes.
void copy(In from, Out to);
void fill(Out to, double value);
void subtract(In a, In b, Out to);               // a - b
void add_scaled(Out y, double a, In x);          // y += a x
void descend(Out x, In step, In g);              // x -= step g, step is one row
void descend(Out x, In step, In g, In h);        // x -= step (g + h)
void squared_distance(In a, In b, Out one_row);  // per lane

void dot(In a, In b, int lanes, double* sum);  // a'b per lane
// to = a - b, and per lane sum'to and sum'sum before to is added to sum.
void difference(In a, In b, Out to, Out sum, double* along, double* square);
void scale(In a, const double* factor, Out to);        // a factor, lane by lane
void scale(In a, const double* factor, In b, Out to);  // and plus b
void outer(In a, In b, In x, Out to);                  // a (b'x): the matrix a b' is never formed

}  // namespace affpcl
