// Reads a FiniteSystem from JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"
#include "affpcl/base/params.h"
#include "affpcl/problem/tabular.h"

namespace affpcl {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    std::ifstream in(path);
    if (!in) throw BadInput(fmt::format("cannot read {}", path));
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    try {
      json_ = parse_json(text);
    } catch (const BadJson& e) {
      throw BadInput(fmt::format("{} cannot be read as JSON: {}", path, e.what()));
    }
    if (!json_.is_object()) fail("must be an object with the keys A, mu, …");
  }

  bool has(const char* key) const { return json_.contains(key); }
  std::vector<std::string> keys() const {
    std::vector<std::string> k;
    for (const JsonMember& m : json_.members()) k.push_back(m.key);
    return k;
  }

  // The array at `key`, whose nested lengths must be `shape`; -1 takes the length that is there and
  // writes it back.
  std::vector<double> numbers(const char* key, std::vector<std::int64_t>& shape) const {
    if (!has(key)) fail(fmt::format("lacks the key '{}'", key));
    std::vector<double> out;
    collect(key, json_[key], shape, 0, key, out);
    return out;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw BadInput(fmt::format("{}: {}", path_, what));
  }

 private:
  void collect(const char* key, const Json& j, std::vector<std::int64_t>& shape, std::size_t depth,
               const std::string& where, std::vector<double>& out) const {
    if (depth == shape.size()) {
      if (!j.is_number() || !std::isfinite(j.get<double>()))
        fail(fmt::format("{} is {}, not a finite number", where, j.description()));
      out.push_back(j.get<double>());
      return;
    }
    if (!j.is_array()) fail(fmt::format("{} must be an array", where));
    const auto size = static_cast<std::int64_t>(j.size());
    if (shape[depth] < 0) shape[depth] = size;
    if (size != shape[depth])
      fail(fmt::format("{} has {} entries, expected {}", where, size, shape[depth]));
    if (size == 0) fail(fmt::format("{} is empty", where));
    for (std::size_t i = 0; i < j.size(); ++i)
      collect(key, j[i], shape, depth + 1, fmt::format("{}[{}]", where, i), out);
  }

  std::string path_;
  Json json_;
};

}  // namespace

FiniteSystem read_finite_system(const std::string& path) {
  const Reader in(path);
  static constexpr std::string_view kKeys[] = {"A",   "Phi", "mu",  "theta",   "b",
                                               "psi", "x0",  "xc0", "thetac0", "states"};
  for (const std::string& key : in.keys())
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys))
      in.fail(fmt::format("'{}' is not a known key{}", key, hint(key, kKeys)));

  FiniteSystem sys;
  std::vector<std::int64_t> shape{-1, -1, -1};
  sys.A = in.numbers("A", shape);
  if (shape[1] != shape[2])
    in.fail(fmt::format("A[s] must be square, but is {} x {}", shape[1], shape[2]));
  const std::int64_t S = shape[0], d = shape[1];
  sys.states = static_cast<int>(S);
  sys.d = static_cast<int>(d);

  shape = {-1, S};
  sys.mu = in.numbers("mu", shape);
  sys.agents = shape[0];
  for (std::int64_t i = 0; i < sys.agents; ++i) {
    double sum = 0;
    for (std::int64_t s = 0; s < S; ++s) {
      const double m = sys.mu[static_cast<std::size_t>(i * S + s)];
      if (m < 0) in.fail(fmt::format("mu[{}][{}] = {} is negative", i, s, m));
      sum += m;
    }
    if (std::abs(sum - 1) > 1e-9) in.fail(fmt::format("mu[{}] sums to {}, not to 1", i, sum));
  }

  if (in.has("Phi")) {
    shape = {S, d, -1};
    sys.Phi = in.numbers("Phi", shape);
    sys.k = static_cast<int>(shape[2]);
  }
  if (in.has("theta") == in.has("b")) in.fail("needs either theta (with Phi) or b, not both");
  if (in.has("theta")) {
    if (!in.has("Phi")) in.fail("has theta but no Phi");
    shape = {sys.agents, sys.k};
    sys.theta = in.numbers("theta", shape);
  } else {
    shape = {sys.agents, S, d};
    sys.b = in.numbers("b", shape);
  }
  if (in.has("psi")) {
    shape = {S, -1};
    sys.psi = in.numbers("psi", shape);
    sys.p = static_cast<int>(shape[1]);
  }
  if (in.has("x0")) shape = {sys.agents, d}, sys.x0 = in.numbers("x0", shape);
  if (in.has("xc0")) shape = {d}, sys.xc0 = in.numbers("xc0", shape);
  if (in.has("thetac0")) shape = {sys.k}, sys.thetac0 = in.numbers("thetac0", shape);
  if (in.has("states")) {
    shape = {sys.agents, -1};
    const std::vector<double> order = in.numbers("states", shape);
    sys.steps = shape[1];
    for (double s : order) {
      if (s != std::floor(s) || s < 0 || s >= static_cast<double>(S))
        in.fail(fmt::format("states holds {}, not a state from 0 to {}", s, S - 1));
      sys.order.push_back(static_cast<int>(s));
    }
  }
  return sys;
}

}  // namespace affpcl
