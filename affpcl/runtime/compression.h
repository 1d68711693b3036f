// Compressed messages: what an agent sends in place of what it contributes to a round's sum. It
// acts between `contribute` and the sum, so every method has it, and no method depends on it.
//
//   top-k      of each part of the message (each field that the method declares) the numbers that
//              are largest in size, a share of them; what is left out is kept and added to the next
//              message (error feedback: Seide et al. 2014, Stich et al. 2018)
//   rand-k     a share of each part's numbers, drawn anew for each round and the same for all
//              agents, so that the sum has no others. Without feedback they are divided by the
//              share, which makes it unbiased
//   quantise   each number rounded at random to one of 2^bits - 1 evenly spaced levels from -s to
//   s,
//              s the part's largest number in size (QSGD: Alistarh et al. 2017); unbiased
//
// Parts in which a method divides by what is summed are sent as they are (Method::uncompressed),
// and so is a part that would not get shorter.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/math/blocks.h"
#include "affpcl/random/streams.h"

namespace affpcl {

struct Compression {
  enum class Kind { kNone, kTopK, kRandK, kQuantise };
  enum class Feedback { kAuto, kNone, kError };
  Kind kind = Kind::kNone;
  double share = 0.1;
  int bits = 8;
  Feedback feedback = Feedback::kAuto;  // auto: where it is biased, which is top-k

  bool on() const { return kind != Kind::kNone; }
  bool remembers() const {
    return on() &&
           (feedback == Feedback::kError || (feedback == Feedback::kAuto && kind == Kind::kTopK));
  }
  static const Params<Compression>& params();
};
std::string to_text(const Compression& compression);  // "top-k 0.1"

class Compressor {
 public:
  Compressor() = default;
  Compressor(const Compression& compression, const SumLayout& sum,
             std::span<const std::string_view> uncompressed);

  bool on() const { return how_.on(); }
  // What a message takes, in numbers of 64 bits. A number that top-k sends has its position beside
  // it, a quantised part its s; the sum comes back whole, but for rand-k.
  double up() const;
  double down() const;

  // Turns an agent's message into what it sends. `unsent` is the agent's memory, a number every
  // kLanes, where there is error feedback. key.step is the round's number.
  void operator()(const Key& key, std::int64_t agent, std::span<double> message, double* unsent,
                  Scratch& scratch) const;

 private:
  struct Part {
    int at, rows;
    int kept;  // numbers that are sent; rows: all of them
    bool whole;
  };
  void keep_largest(const Part& part, double* x, Scratch& scratch) const;
  void keep_drawn(const Key& key, std::size_t part, double* x, Scratch& scratch) const;
  void round(const Part& part, const double* uniforms, double* x) const;
  double length(const Part& part) const;

  Compression how_;
  std::vector<Part> parts_;
};

template <>
struct EnumNames<Compression::Kind> {
  static constexpr std::string_view all[] = {"none", "top-k", "rand-k", "quantise"};
};
template <>
struct EnumNames<Compression::Feedback> {
  static constexpr std::string_view all[] = {"auto", "none", "error"};
};

}  // namespace affpcl
