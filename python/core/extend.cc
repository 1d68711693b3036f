// Problems and methods written in Python: they answer for a whole block of agents per call, in the
// same round loop, with the same streams of random numbers. python/affpcl/extend.py shows what they
// may define.
#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <deque>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/method/local_steps.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/study/replica.h"
#include "python/core/core.h"
#include "python/core/fields.h"
#include "python/core/views.h"

// What type checkers are told of views.
#define AFFPCL_ARRAY "numpy.typing.NDArray[numpy.float64]"

namespace affpcl::python {
namespace {

// By value of Purpose.
constexpr std::array<std::string_view, 10> kPurposes = {
    "sample",    "system_A", "system_Phi", "theta",    "environment",
    "objective", "method",   "support",    "features", "pair"};

Purpose purpose(const std::string& name) {
  const auto at = std::find(kPurposes.begin(), kPurposes.end(), name);
  if (at == kPurposes.end())
    throw BadInput(fmt::format("purpose = '{}' is not known{}", name, hint(name, kPurposes)));
  return static_cast<Purpose>(at - kPurposes.begin());
}

nb::object agents_of(Lanes lanes) {
  return nb::steal(
      PySlice_New(nb::int_(lanes.first).ptr(), nb::int_(lanes.first + lanes.count).ptr(), nullptr));
}

using Fill = void (*)(const Key&, Lanes, Purpose, std::uint32_t, Out);

// rows x agents [first, first + count) of a stream.
Numbers drawn(Fill fill, const Key& key, std::int64_t first, std::int64_t count, int rows,
              const std::string& why, std::uint32_t index) {
  if (count < 0 || rows < 1 || index % 2 != 0)
    throw BadInput(
        fmt::format("{} rows from index {} of {} agents cannot be drawn: at least one "
                    "row, from an even index",
                    rows, index, count));
  const std::size_t shape[] = {static_cast<std::size_t>(rows), static_cast<std::size_t>(count)};
  std::vector<double> all(shape[0] * shape[1]);
  const Buffer block(shape[0] * kLanes);
  for (std::int64_t at = 0; at < count; at += kLanes) {
    const int lanes = static_cast<int>(std::min<std::int64_t>(kLanes, count - at));
    fill(key, {first + at, lanes}, purpose(why), index, {block.data(), rows});
    for (int r = 0; r < rows; ++r)
      std::copy_n(block.data() + r * kLanes, lanes, all.begin() + r * count + at);
  }
  return to_numpy(std::move(all), shape);
}

// What draw() is given.
struct Sample {
  Key key;
  Lanes lanes;
  nb::object memory, acting;
};

// ---- problems ----

class PythonProblem final : public Problem,
                            public LinearObjective,
                            public Means,
                            public RatioFeatures,
                            public Scores {
 public:
  PythonProblem(std::string name, nb::object self) : name_(std::move(name)), self_(self) {
    shape_.agents = number(self, "agents");
    shape_.d = static_cast<int>(number(self, "dim"));
    shape_.k = static_cast<int>(number(self, "k"));
    shape_.p = static_cast<int>(number(self, "p"));
    shape_.acts = nb::cast<bool>(self.attr("acts"));
    sample_ = static_cast<int>(number(self, "rows"));
    memory_ = static_cast<int>(number(self, "memory"));
    if (shape_.agents < 1 || shape_.d < 1 || sample_ < 1)
      throw BadInput(
          fmt::format("problem '{}' has {} agents, dim {} and samples of {} rows; each "
                      "must be at least 1",
                      name_, shape_.agents, shape_.d, sample_));
    means_ = nb::cast<bool>(self.attr("has_means"));
    coe_ = nb::cast<bool>(self.attr("has_coe"));
    error_ = nb::cast<bool>(self.attr("has_error"));
    if (shape_.k > 0 && shape_.k != shape_.d && !coe_)
      throw BadInput(fmt::format(
          "problem '{}' has k = {} weights and dim = {}: where Phi is not square it needs "
          "coe(agents, s, b, theta)",
          name_, shape_.k, shape_.d));
    G_A_ = nb::cast<double>(self.attr("G_A"));
    start_ = nb::cast<double>(self.attr("start"));
    if (means_) solve();
  }

  Shape shape() const override { return shape_; }
  void declare(Layout& world, Layout& sample) const override {
    if (memory_ > 0) world.add("memory", memory_);
    sample.add("s", sample_);
  }
  void draw(const Draw& draw, Agents world, Out s) const override {
    const int n = world.lanes.count;
    answer("draw", s, n, [&] {
      const Sample sample{draw.key, world.lanes,
                          memory_ > 0 ? views_.write(world[{0, memory_}], n) : nb::none(),
                          shape_.acts ? views_.read(draw.acting, n) : nb::none()};
      return (*self_).attr("draw")(sample);
    });
  }
  void objective(Lanes l, In s, Out b) const override { call("objective", l, b, s); }
  void direction(Lanes l, In s, In b, In x, Scratch&, Out g) const override {
    call("apply", l, g, s, x);
    subtract_objective(b, g);
  }
  void start(Lanes lanes, Out x) const override {
    for (int r = 0; r < x.rows; ++r) std::fill_n(x.row(r), lanes.count, start_);
  }
  CentralStart central_start() const override {
    return {std::vector<double>(static_cast<std::size_t>(shape_.d), start_), {}};
  }
  Facets facets() const override {
    return {.linear = shape_.k > 0 ? this : nullptr,
            .form = coe_ ? ObjectiveForm::kMoments : ObjectiveForm::kLearnt,
            .means = means_ ? this : nullptr,
            .features = shape_.p > 0 ? this : nullptr,
            .scores = error_ && means_ ? this : nullptr};
  }
  void Phi(Lanes l, In s, In theta, Scratch&, Out bhat) const override {
    call("Phi", l, bhat, s, theta);
  }
  void coe(Lanes l, In s, In b, In theta, In bhat, Out g) const override {
    if (!coe_) return LinearObjective::coe(l, s, b, theta, bhat, g);
    call("coe", l, g, s, b, theta);
  }
  void mean_coe(Lanes l, In theta, Out g) const override {
    if (!coe_) return Means::mean_coe(l, theta, g);
    call("mean_coe", l, g, theta);
  }
  void error(Lanes l, In x, Scratch&, Out one_row) const override { call("error", l, one_row, x); }
  void psi(Lanes l, In s, Out features) const override { call("psi", l, features, s); }
  void mean_apply(Lanes l, In x, Out Ax) const override { call("mean_apply", l, Ax, x); }
  void mean_objective(Lanes l, Out b) const override { call("mean_objective", l, b); }
  void mean_Phi(Lanes l, In theta, Out b) const override { call("mean_Phi", l, b, theta); }
  double G_A() const override { return G_A_; }

 private:
  static std::int64_t number(const nb::object& self, const char* name) {
    return nb::cast<std::int64_t>(self.attr(name));
  }

  template <class... Ins>
  void call(const char* function, Lanes lanes, Out out, Ins... ins) const {
    answer(function, out, lanes.count, [&] {
      return (*self_).attr(function)(agents_of(lanes), views_.read(ins, lanes.count)...);
    });
  }

  // Puts what the function gives into `out`.
  template <class Ask>
  void answer(const char* function, Out out, int count, Ask ask) const {
    const Turn turn;
    Views::Call call(views_);
    const auto who = [&] { return fmt::format("problem '{}': {}", name_, function); };
    if (!views_.put(ask(), out, count)) {
      nb::python_error cause;
      nb::raise_from(cause, PyExc_ValueError, "%s gave something else than %d rows of %d agents",
                     who().c_str(), out.rows, count);
    }
    call.end(who);
  }

  std::string name_;
  Held self_;
  Shape shape_;
  int sample_ = 1, memory_ = 0;
  bool means_ = false, coe_ = false, error_ = false;
  double G_A_ = 0, start_ = 0;
  mutable Views views_;
};

// ---- methods ----

constexpr const char* kFixedMean = "the mean of what was contributed can be read only";

// The argument of contribute and update: one block's memory, its samples, and the centre.
class PythonBlock {
 public:
  struct Names {
    std::vector<Layout::Named> agent, centre, sum;
  };
  PythonBlock(const Block& block, const double* mean, const Names& names, Views& views)
      : block_(&block), mean_(mean), names_(&names), views_(&views), live_(views.live()) {}

  Lanes lanes() const { return block().lanes(); }
  int steps() const { return block().batch.steps; }
  int size() const { return block().batch.size; }

  Fields agent() const { return live_.require(), Fields(names_->agent, block_->agents, *views_); }
  Fields centre() const {
    live_.require();
    return {names_->centre, block_->centre.p, "block.centre can be read only: centre() changes it",
            *views_};
  }
  Fields mean() const {
    live_.require();
    if (mean_ == nullptr) throw nb::attribute_error("contribute makes the mean, and has none");
    return {names_->sum, const_cast<double*>(mean_), kFixedMean, *views_};
  }
  nb::object step_size(int k) const { return views_->read(block(k).step_sizes(k), lanes().count); }
  double central_step_size(int k) const { return block(k).central_step(k); }
  nb::object residual(int k, nb::handle x) const {
    Scratch& scratch = block(k).scratch();
    const int d = block().problem().shape().d;
    const Out at = scratch.rows(d), g = scratch.rows(d);
    if (!views_->put(x, at, lanes().count)) throw nb::python_error();
    direction(block(), k, at, g);
    return views_->read(g, lanes().count);
  }
  std::pair<nb::object, nb::object> sample(int k, int m) const {
    const Batch& batch = block(k).batch;
    if (m < 0 || m >= size()) throw nb::index_error("no such sample of the batch");
    return {views_->read(batch.s(k, m), lanes().count), views_->read(batch.b(k, m), lanes().count)};
  }
  void local_steps(const std::string& field) const {
    const Block& of = block();
    for (const Layout::Named& f : names_->agent) {
      if (f.name != field) continue;
      const Out x = of.agents[f.field];
      views_->store(x);
      affpcl::local_steps(of, x);
      return views_->load(x);
    }
    throw nb::key_error(field.c_str());
  }

 private:
  const Block& block(int k) const {
    if (k < 0 || k >= steps()) throw nb::index_error("no such local step of the round");
    return *block_;
  }
  const Block& block() const { return live_.require(), *block_; }

  const Block* block_;
  const double* mean_;
  const Names* names_;
  Views* views_;
  Live live_;
};

class PythonMethod final : public Method {
 public:
  PythonMethod(std::string name, nb::object self)
      : name_(std::move(name)),
        self_(self),
        contributes_(nb::hasattr(self, "contribute")),
        moves_centre_(nb::hasattr(self, "centre")) {}

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override {
    const Turn turn;
    const nb::object memory = (*self_).attr("declare")(setup.problem.shape());
    d_ = setup.problem.shape().d;
    take(memory, "agent", [&](const char* n, int rows) { agent.add(n, rows); });
    take(memory, "centre", [&](const char* n, int rows) { centre.add(n, rows); });
    take(memory, "sum", [&](const char* n, int rows) { sum.add(n, rows); });
    names_ = {agent.fields(), centre.fields(), sum.layout().fields()};
    own_ = find(names_.agent, "x", d_);
    shared_ = find(names_.centre, "x", d_);
    if (!own_ && !shared_)
      throw BadInput(
          fmt::format("method '{}' declares no field 'x' of {} rows, neither of an agent "
                      "nor of the centre; that is what is scored",
                      name_, d_));
    if (!names_.centre.empty() && !shared_ && !moves_centre_)
      throw BadInput(
          fmt::format("method '{}' declares fields of the centre, and has no function "
                      "centre(self, mean, centre) that changes them",
                      name_));
    if (contributes_ != !names_.sum.empty())
      throw BadInput(
          fmt::format("method '{}': what contribute adds up has to be declared as "
                      "sum, and the other way round",
                      name_));
  }
  void start(const Problem& problem, const Key&, Centre centre) const override {
    if (shared_) set(centre.mutate(*shared_), affpcl::central_start(problem).x);
  }
  void start(const Problem& problem, Agents agents) const override {
    if (own_) problem.start(agents.lanes, agents[*own_]);
  }

  void contribute(const Block& block, Message message) const override {
    if (!contributes_) return;
    with_block("contribute", block, nullptr, [&](const nb::object& given) {
      if (PyMapping_Check(given.ptr()) == 0 || nb::len(given) != names_.sum.size())
        throw BadInput(
            fmt::format("method '{}': contribute must give every field of the sum, a "
                        "dict of {}",
                        name_, names_.sum.size()));
      for (const Layout::Named& f : names_.sum) {
        const Out rows = block.scratch().rows(f.field.rows);
        if (!views_.put(nb::object(given[f.name.c_str()]), rows, block.lanes().count))
          throw nb::python_error();
        message.add(f.field, rows);
      }
    });
  }
  void centre(const Round&, Mean mean, Centre centre) const override {
    if (!moves_centre_) return;
    const Turn turn;
    Views::Call call(views_);
    (*self_).attr("centre")(Fields(names_.sum, const_cast<double*>(mean.p), kFixedMean, views_),
                            Fields(names_.centre, centre.p, nullptr, views_));
    call.end([&] { return fmt::format("method '{}': centre", name_); });
  }
  void update(const Block& block, Mean mean) const override {
    with_block("update", block, mean.p, [](const nb::object&) {});
  }

  In solution(Agents agents, Centre centre) const override {
    return own_ ? In(agents[*own_]) : centre[*shared_];
  }
  In central_x(Centre centre) const override { return shared_ ? centre[*shared_] : In{}; }

 private:
  static std::optional<Field> find(const std::vector<Layout::Named>& names, const char* name,
                                   int rows) {
    for (const Layout::Named& f : names)
      if (f.name == name && f.field.rows == rows) return f.field;
    return {};
  }

  template <class Add>
  static void take(const nb::object& memory, const char* what, Add add) {
    for (auto [name, rows] : nb::cast<nb::dict>(memory.attr(what)))
      add(nb::cast<std::string>(name).c_str(), nb::cast<int>(rows));
  }

  template <class Use>
  void with_block(const char* function, const Block& block, const double* mean, Use use) const {
    const Turn turn;
    Views::Call call(views_);
    {
      const nb::object given =
          nb::cast(PythonBlock(block, mean, names_, views_), nb::rv_policy::move);
      use((*self_).attr(function)(given));
    }
    call.end([&] { return fmt::format("method '{}': {}", name_, function); });
  }

  std::string name_;
  Held self_;
  bool contributes_, moves_centre_;
  int d_ = 0;
  PythonBlock::Names names_;
  std::optional<Field> own_, shared_;  // x, of an agent and of the centre
  mutable Views views_;
};

// ---- catalogue ----

// Names and docs of kinds live as long as the catalogue does, which holds views of them.
std::string_view kept(const std::string& text) {
  static std::deque<std::string> all;
  return all.emplace_back(text);
}

std::set<std::string, std::less<>>& problems() {
  static std::set<std::string, std::less<>> names;
  return names;
}
std::set<std::string, std::less<>>& methods() {
  static std::set<std::string, std::less<>> names;
  return names;
}

std::vector<Param> params_of(const std::map<std::string, Value>& defaults) {
  std::vector<Param> params;
  for (const auto& [name, value] : defaults)
    params.push_back({.name = kept(name), .doc = "", .fallback = value});
  return params;
}

nb::dict values_of(const Values& values) {
  nb::dict all;
  for (const auto& [name, value] : values.all()) all[name.c_str()] = nb::cast(value);
  return all;
}

template <class Kinds>
void refuse_taken(const char* what, const std::string& name, const Kinds& kinds,
                  const std::set<std::string, std::less<>>& own) {
  for (const auto& kind : kinds)
    if (kind.name == name && !own.contains(name))
      throw BadInput(
          fmt::format("the engine has a {} '{}' of its own; choose another name", what, name));
}

// The catalogue outlives the interpreter, so it is the module that holds what makes a kind.
nb::handle held_by_module(const std::string& key, const nb::object& make) {
  nb::dict makers = nb::module_::import_("affpcl._core").attr("_makers");
  makers[key.c_str()] = make;
  return make;
}

void add_problem(const std::string& name, const std::string& doc,
                 const std::map<std::string, Value>& defaults, const nb::object& make) {
  refuse_taken("problem", name, problem_kinds(), problems());
  const nb::handle maker = held_by_module("problem " + name, make);
  add_problem_kind(
      {kept(name), kept(doc), params_of(defaults),
       [name, maker](const Values& v, std::uint64_t seed,
                     std::uint32_t replicate) -> std::unique_ptr<Problem> {
         const Turn turn;
         return std::make_unique<PythonProblem>(name, maker(values_of(v), Key{seed, replicate, 0}));
       }});
  problems().insert(name);
}

void add_method(const std::string& name, const std::string& doc,
                const std::map<std::string, Value>& defaults, const nb::object& make) {
  refuse_taken("method", name, method_kinds(), methods());
  const nb::handle maker = held_by_module("method " + name, make);
  add_method_kind({kept(name), kept(doc), params_of(defaults),
                   [name, maker](const Values& v) -> std::unique_ptr<Method> {
                     const Turn turn;
                     return std::make_unique<PythonMethod>(name, maker(values_of(v)));
                   }});
  methods().insert(name);
}

// ---- one replicate, step by step ----

class Replicate {
 public:
  Replicate(const std::string& toml, const std::string& name, std::uint32_t number, int threads)
      : team_(threads > 1 ? thread_team(threads) : serial_team()) {
    const Study study = read_study(toml, name);
    if (study.settings.size() != 1)
      throw BadInput(fmt::format("{}: a replicate is of one setting, but the sweep has {}", name,
                                 study.settings.size()));
    const Spec& spec = study.settings[0].spec;
    for (const MethodSpec& m : spec.methods) names_.push_back(m.name);
    try {
      replica_ = make_replica(spec, number, *team_);
    } catch (const BadInput& e) {
      throw BadInput(fmt::format("{}: {}", name, e.marked()));
    }
  }

  void advance(std::int64_t until) {
    interruptible([&](const std::atomic<bool>& stop) {
      replica_.run->advance(until, &stop);
      return 0;
    });
  }
  std::int64_t step() const { return replica_.run->step(); }
  const std::vector<std::string>& names() const { return names_; }

  Numbers solution(const std::string& method) const {
    const std::size_t m = at(method);
    const std::size_t shape[] = {static_cast<std::size_t>(replica_.problem->shape().agents),
                                 static_cast<std::size_t>(replica_.run->dimension())};
    std::vector<double> x(shape[0] * shape[1]);
    for (std::size_t i = 0; i < shape[0]; ++i)
      for (std::size_t r = 0; r < shape[1]; ++r)
        x[i * shape[1] + r] =
            replica_.run->solution(m, static_cast<std::int64_t>(i), static_cast<int>(r));
    return to_numpy(std::move(x), shape);
  }
  Numbers curve(const std::string& method) {
    return to_numpy(std::vector<double>(replica_.run->finish()[at(method)].curve));
  }
  using State = std::pair<std::int64_t, std::vector<std::pair<std::string, std::vector<double>>>>;
  State save() {
    RunState state = replica_.run->save();
    State saved{state.step, {}};
    for (RunState::Field& f : state.fields)
      saved.second.emplace_back(std::move(f.name), std::move(f.numbers));
    return saved;
  }
  void load(const State& saved) {
    RunState state{saved.first, {}};
    for (const auto& [name, numbers] : saved.second) state.fields.push_back({name, numbers});
    replica_.run->load(state);
  }

 private:
  std::size_t at(const std::string& method) const {
    const auto found = std::find(names_.begin(), names_.end(), method);
    if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
    const std::vector<std::string_view> known(names_.begin(), names_.end());
    throw BadInput(fmt::format("the run has no method '{}'{}", method, hint(method, known)));
  }
  std::unique_ptr<Team> team_;
  std::vector<std::string> names_;
  Replica replica_;
};

void bind_fields(nb::module_& m) {
  nb::class_<Fields>(m, "Fields", "Arrays by name; to assign to one is to write into it.")
      .def("__getitem__", &Fields::get, nb::arg("name"),
           nb::sig("def __getitem__(self, name: str) -> " AFFPCL_ARRAY))
      .def("__setitem__", &Fields::set, nb::arg("name"), nb::arg("value"),
           nb::sig("def __setitem__(self, name: str, value: numpy.typing.ArrayLike) -> None"))
      .def("__len__", &Fields::size)
      .def("__contains__", &Fields::contains, nb::arg("name"))
      .def(
          "__iter__", [](const Fields& f) { return nb::iter(nb::cast(f.keys())); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def("keys", &Fields::keys)
      .def("values", &Fields::values, nb::sig("def values(self) -> list[" AFFPCL_ARRAY "]"))
      .def("items", &Fields::items,
           nb::sig("def items(self) -> list[tuple[str, " AFFPCL_ARRAY "]]"));
}

void bind_block(nb::module_& m) {
  nb::class_<PythonBlock>(m, "Block", "What contribute and update are given: one block of agents.")
      .def_prop_ro(
          "agents", [](const PythonBlock& b) { return agents_of(b.lanes()); },
          nb::for_getter(nb::sig("def agents(self) -> slice")))
      .def_prop_ro("steps", &PythonBlock::steps, "Local steps of this round.")
      .def_prop_ro("batch", &PythonBlock::size, "Samples of a local step.")
      .def_prop_ro("agent", &PythonBlock::agent, "The agents' fields, to be changed.")
      .def_prop_ro("centre", &PythonBlock::centre, "What all agents share.")
      .def_prop_ro("mean", &PythonBlock::mean, "The mean of what was contributed.")
      .def("step_size", &PythonBlock::step_size, nb::arg("k") = 0,
           nb::sig("def step_size(self, k: int = 0) -> " AFFPCL_ARRAY))
      .def("central_step_size", &PythonBlock::central_step_size, nb::arg("k") = 0)
      .def("residual", &PythonBlock::residual, nb::arg("k"), nb::arg("x"),
           nb::sig("def residual(self, k: int, x: " AFFPCL_ARRAY ") -> " AFFPCL_ARRAY),
           "The direction A(s) x - b(s) of each agent's samples of local step k.")
      .def("sample", &PythonBlock::sample, nb::arg("k") = 0, nb::arg("m") = 0,
           nb::sig("def sample(self, k: int = 0, m: int = 0) -> tuple[" AFFPCL_ARRAY
                   ", " AFFPCL_ARRAY "]"),
           "s, and b(s).")
      .def("local_steps", &PythonBlock::local_steps, nb::arg("field"),
           "All local steps x -= step_size * residual of a field.");
}

}  // namespace

bool written_in_python(const Spec& spec) {
  return problems().contains(spec.problem_kind) ||
         std::any_of(spec.methods.begin(), spec.methods.end(),
                     [](const MethodSpec& m) { return methods().contains(m.kind); });
}

void bind_extend(nb::module_& m) {
  m.attr("_makers") = nb::dict();
  nb::class_<Key>(m, "Key",
                  "Which random numbers: a pure function of this, agent and purpose.\n\n"
                  ">>> import affpcl\n>>> affpcl.Key(seed=1, replicate=2).replicate\n2")
      .def(nb::init<std::uint64_t, std::uint32_t, std::uint32_t>(), nb::arg("seed"),
           nb::arg("replicate") = Key{}.replicate, nb::arg("step") = Key{}.step)
      .def_ro("seed", &Key::seed)
      .def_ro("replicate", &Key::replicate)
      .def_ro("step", &Key::step);
  nb::class_<Shape>(m, "Shape", "How large a problem is.")
      .def_ro("agents", &Shape::agents)
      .def_ro("d", &Shape::d)
      .def_ro("k", &Shape::k)
      .def_ro("p", &Shape::p);
  nb::class_<Sample>(m, "Sample", "What draw is given: whose samples, and their random numbers.")
      .def_ro("key", &Sample::key)
      .def_prop_ro(
          "agents", [](const Sample& s) { return agents_of(s.lanes); },
          nb::for_getter(nb::sig("def agents(self) -> slice")))
      .def_prop_ro(
          "memory", [](const Sample& s) { return s.memory; },
          nb::for_getter(nb::sig("def memory(self) -> " AFFPCL_ARRAY)),
          "What agents remember between samples, to be changed.")
      .def_prop_ro(
          "acting", [](const Sample& s) { return s.acting; },
          nb::for_getter(nb::sig("def acting(self) -> " AFFPCL_ARRAY)), "The iterate that acts.")
      .def(
          "normals",
          [](const Sample& s, int rows, const std::string& why, std::uint32_t first) {
            return drawn(&normals, s.key, s.lanes.first, s.lanes.count, rows, why, first);
          },
          nb::arg("rows"), nb::arg("purpose") = kPurposes[0].data(), nb::arg("first") = 0)
      .def(
          "uniforms",
          [](const Sample& s, int rows, const std::string& why, std::uint32_t first) {
            return drawn(&uniforms, s.key, s.lanes.first, s.lanes.count, rows, why, first);
          },
          nb::arg("rows"), nb::arg("purpose") = kPurposes[0].data(), nb::arg("first") = 0);
  bind_fields(m);
  bind_block(m);
  const auto stream = [&](const char* name, Fill fill, const char* doc) {
    m.def(
        name,
        [fill](const Key& key, std::int64_t agents, int rows, const std::string& why,
               std::uint32_t first) { return drawn(fill, key, 0, agents, rows, why, first); },
        nb::arg("key"), nb::arg("agents"), nb::arg("rows"), nb::arg("purpose"),
        nb::arg("first") = 0, doc);
  };
  stream("normals", &normals,
         "[rows][agents] standard normal numbers of a stream.\n\n"
         ">>> import affpcl\n>>> affpcl.normals(affpcl.Key(1), 4, 2, 'sample').shape\n(2, 4)");
  stream("uniforms", &uniforms,
         "[rows][agents] numbers in (0, 1) of a stream.\n\n"
         ">>> import affpcl\n>>> affpcl.uniforms(affpcl.Key(1), 4, 2, 'sample').shape\n(2, 4)");
  m.def("add_problem", &add_problem, nb::arg("name"), nb::arg("doc"), nb::arg("defaults"),
        nb::arg("make"));
  m.def("add_method", &add_method, nb::arg("name"), nb::arg("doc"), nb::arg("defaults"),
        nb::arg("make"));
  nb::class_<Replicate>(m, "Replicate", "One replicate of a setting, run step by step.")
      .def(nb::init<std::string, std::string, std::uint32_t, int>(), nb::arg("toml"),
           nb::arg("name"), nb::arg("number"), nb::arg("threads"))
      .def("advance", &Replicate::advance, nb::arg("until"))
      .def_prop_ro("step", &Replicate::step)
      .def_prop_ro("methods", &Replicate::names)
      .def("solution", &Replicate::solution, nb::arg("method"))
      .def("curve", &Replicate::curve, nb::arg("method"))
      .def("save", &Replicate::save)
      .def("load", &Replicate::load, nb::arg("state"));
}

}  // namespace affpcl::python
