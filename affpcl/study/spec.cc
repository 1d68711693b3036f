#include "affpcl/study/spec.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "affpcl/base/error.h"
#include "affpcl/base/join.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/study/toml_text.h"
#include "affpcl/study/toml_write-inl.h"

namespace affpcl {
namespace {

using Given = std::map<std::string, Value>;

const Params<RunOptions>& run_options() {
  using Options = RunOptions;
  static const Params<Options> kParams = {
      {"steps", &Options::steps, "samples (or batches) per agent", between(1, 4e9)},
      {"seed", &Options::seed, "decides all random numbers", at_least(0)},
      {"tail", &Options::tail, "steps averaged for the summary; 0: the last ten, or all if fewer",
       at_least(0)},
      {"iterate", &Options::iterate,
       "what is scored: the last iterate, lem:step's weighted average, or the second half's"},
      {"participation", &Options::participation,
       "share of agents that take part in a round: max(1, round(share n)), drawn anew without "
       "replacement and the same for all methods",
       above(0, 1)},
      {"curve_agents", &Options::curve_agents, "agents whose own curve is kept; -1 is the last"},
      {"curve_points", &Options::curve_points, "a longer run keeps so many evenly spaced points",
       between(1, 1e7)},
      {"diverged_above", &Options::diverged_above,
       "error, in units of mean |x*|^2, beyond which a run is given up", between(1, 1e300)},
  };
  return kParams;
}

const Params<Spec>& run_table() {
  static const Params<Spec> kParams =
      Params<Spec>()
          .add(&Spec::run, run_options())
          .add(
              {{"replicates", &Spec::replicates, "independent repetitions", between(1, 1e7)},
               {"first", &Spec::first,
                "number of the first replicate: a study can be split, or go on where another ended",
                between(0, 1e9)},
               {"schedule", &Spec::schedule,
                "instead of participation: a CSV file with the columns round (from 1) and agent, "
                "which begins anew after its last round",
                kPath}});
  return kParams;
}

const Params<Spec>& problem_table() {
  static const Params<Spec> kParams = {
      {"redraw",
       &Spec::redraw_system,
       {"samples", "system"},
       "a new system per replicate, or one system and new samples"}};
  return kParams;
}

const Params<MethodSpec>& method_table() {
  static const Params<MethodSpec> kParams = {
      {"name", &MethodSpec::name, "how results call it; the kind if left out"},
      {"period", &MethodSpec::period, "local steps between two rounds of communication (K)",
       between(1, 1e6)},
      {"batch", &MethodSpec::batch, "samples averaged in one local step", between(1, 1e6)},
      {"samples", &MethodSpec::samples,
       "instead of period: samples between two rounds, in steps of `batch`, the last one with what "
       "is left",
       between(0, 1e9)},
      {"sum", &MethodSpec::sum, kSumsDoc},
  };
  return kParams;
}

constexpr std::string_view kCompress = "compress";
constexpr std::string_view kStepKeys[] = {"step_size", "step_size_central", "step_size_objective",
                                          "step_size_ratio"};

// ---- TOML to values ----

std::string allowed_words(const std::vector<std::string_view>& words) {
  return "; allowed: " + join(words, ", ");
}

std::vector<std::string_view> names_of(std::span<const Param> a, std::span<const Param> b = {},
                                       std::initializer_list<std::string_view> more = {}) {
  std::vector<std::string_view> names(more);
  for (const Param& p : a) names.push_back(p.name);
  for (const Param& p : b) names.push_back(p.name);
  return names;
}

class Parser {
 public:
  explicit Parser(std::string name) : name_(std::move(name)) {}

  [[noreturn]] void fail(const std::string& what, const toml::node* node = nullptr) const {
    const auto line = node != nullptr ? node->source().begin.line : 0;
    throw BadInput(line > 0 ? fmt::format("{} line {}: {}", name_, line, what)
                            : fmt::format("{}: {}", name_, what));
  }

  Value value(const std::string& key, const toml::node& node) const {
    if (const auto* b = node.as_boolean()) return b->get();
    if (const auto* i = node.as_integer()) return i->get();
    if (const auto* x = node.as_floating_point()) return x->get();
    if (const auto* s = node.as_string()) return s->get();
    if (const auto* a = node.as_array()) {
      std::vector<double> list;
      for (const toml::node& item : *a) {
        const auto x = item.value<double>();
        if (!x) fail(fmt::format("{} must be a list of numbers", key), &item);
        list.push_back(*x);
      }
      return list;
    }
    fail(fmt::format("{} has a value of a kind that no key takes", key), &node);
  }

  // The table's entries as values, except `apart`, which need their own treatment.
  Given given(const std::string& where, const toml::table& table,
              std::span<const std::string_view> apart) const {
    Given out;
    for (const auto& [key, node] : table) {
      const std::string_view k = key.str();
      if (std::find(apart.begin(), apart.end(), k) == apart.end())
        out[std::string(k)] = value(where + "." + std::string(k), node);
    }
    return out;
  }

  void only(const std::string& where, const toml::table& table,
            const std::vector<std::string_view>& keys) const {
    for (const auto& [key, node] : table)
      if (std::find(keys.begin(), keys.end(), key.str()) == keys.end())
        fail(fmt::format("{}{}{} is not a known key{}", where, where.empty() ? "" : ".", key.str(),
                         hint(key.str(), keys)),
             &node);
  }

  const toml::table& table(const toml::table& root, const char* key) const {
    const toml::node* node = root.get(key);
    if (node == nullptr) fail(fmt::format("there is no [{}] section", key));
    if (!node->is_table()) fail(fmt::format("{} must be a section [{}]", key, key), node);
    return *node->as_table();
  }

  std::optional<StepRule> step(const std::string& where, const toml::table& table,
                               std::string_view key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return std::nullopt;
    const std::string full = fmt::format("{}.{}", where, key);
    StepRule rule;
    const auto positive = [&](const std::string& what, const toml::node& n) {
      const auto x = n.value<double>();
      if (!n.is_number() || !x || !std::isfinite(*x) || *x <= 0)
        fail(fmt::format("{} = {} is not allowed: it must be a finite number above 0, or a table "
                         "like {{schedule = \"log-constant\"}}",
                         what, toml_value(n)),
             &n);
      return *x;
    };
    const auto choice = [&](const toml::table& in, const char* name,
                            const std::vector<std::string_view>& allowed) {
      const toml::node* n = in.get(name);
      if (n == nullptr) return std::string(allowed.front());
      const auto word = n->is_string() ? n->as_string()->get() : std::string();
      if (std::find(allowed.begin(), allowed.end(), word) == allowed.end())
        fail(fmt::format("{}.{} = {} is not known{}", full, name, toml_value(*n),
                         allowed_words(allowed)),
             n);
      return word;
    };
    if (!node->is_table()) {
      rule.value = positive(full, *node);
      return rule;
    }
    const toml::table& t = *node->as_table();
    only(full, t, {"schedule", "value", "per", "t0"});
    const std::string schedule = choice(t, "schedule", {"constant", "log-constant", "diminishing"});
    rule.kind = schedule == "diminishing"    ? Schedule::Kind::kDiminishing
                : schedule == "log-constant" ? Schedule::Kind::kLogConstant
                                             : Schedule::Kind::kConstant;
    rule.per_agent = choice(t, "per", {"agent", "min"}) == "agent";
    if (t.contains("value"))
      rule.value = positive(full + ".value", *t.get("value"));
    else if (rule.kind == Schedule::Kind::kConstant)
      fail(fmt::format("{} needs a value", full), node);
    if (t.contains("t0")) rule.t0 = positive(full + ".t0", *t.get("t0"));
    return rule;
  }

  // compress = {kind = "top-k", share = 0.1}, or the kind alone.
  Compression compression(const std::string& where, const toml::node* node) const {
    if (node == nullptr) return {};
    toml::table t;
    if (const auto* kind = node->as_string()) {
      t.insert("kind", kind->get());
    } else if (node->is_table()) {
      t = *node->as_table();
    } else {
      fail(fmt::format("{} must be a table like {{kind = \"top-k\", share = 0.1}}", where), node);
    }
    const std::vector<Param>& params = Compression::params().table();
    only(where, t, names_of(params));
    const Compression c = Compression::params().read(
        named([&] { return Values(params, given(where, t, {}), where); }));
    const bool keeps = c.kind == Compression::Kind::kTopK || c.kind == Compression::Kind::kRandK;
    if (t.contains("share") && !keeps)
      fail(fmt::format("{}.share goes with top-k and rand-k only", where), node);
    if (t.contains("bits") && c.kind != Compression::Kind::kQuantise)
      fail(fmt::format("{}.bits goes with quantise only", where), node);
    return c;
  }

  Spec spec(const toml::table& root) const;
  const std::string& name() const { return name_; }

 private:
  template <class Work>
  auto named(Work work) const -> decltype(work());
  void read_problem(const toml::table& problem, Spec& spec) const;
  void read_run(const toml::table& run, Spec& spec) const;
  MethodSpec read_method(const toml::table& method) const;

  std::string name_;
};

// A path that does not depend on the working directory; relative ones start at `folder`.
std::string absolute(const std::string& path, const std::filesystem::path& folder) {
  if (path.empty()) return path;
  return std::filesystem::absolute(folder / path).lexically_normal().string();
}

// Whether a key such as problem.file names a file in any kind of problem.
bool names_file(const std::string& key) {
  for (const ProblemKind& kind : problem_kinds())
    for (const Param& p : kind.params)
      if (p.allowed.path && key == "problem." + std::string(p.name)) return true;
  for (const Param& p : run_table().table())
    if (p.allowed.path && key == "run." + std::string(p.name)) return true;
  return false;
}

std::string required_text(const Parser& in, const toml::table& table, const char* where,
                          const char* key, const char* example) {
  const toml::node* node = table.get(key);
  if (node == nullptr)
    in.fail(fmt::format("{}.{} is missing, for example {} = \"{}\"", where, key, key, example),
            &table);
  if (!node->is_string())
    in.fail(fmt::format("{}.{} must be a text, for example \"{}\"", where, key, example), node);
  return node->as_string()->get();
}

// What lies below the parser does not know the spec's name; its complaints start with it.
template <class Work>
auto Parser::named(Work work) const -> decltype(work()) {
  try {
    return work();
  } catch (const BadInput& e) {
    const std::string what = e.what();
    throw BadInput(what.rfind(name_, 0) == 0 ? what : name_ + ": " + what);
  }
}

// Takes the entries that `table` describes out of `given`.
Given extract(Given& given, const std::vector<Param>& table) {
  Given taken;
  for (const Param& p : table)
    if (auto entry = given.extract(std::string(p.name))) taken.insert(std::move(entry));
  return taken;
}

void Parser::read_problem(const toml::table& problem, Spec& spec) const {
  spec.problem_kind = required_text(*this, problem, "problem", "kind", "gaussian");
  const ProblemKind& kind =
      named([&]() -> const ProblemKind& { return problem_kind(spec.problem_kind); });
  const std::vector<Param>& common = problem_table().table();
  only("problem", problem, names_of(kind.params, common, {"kind"}));
  Given own = given("problem", problem, std::vector<std::string_view>{"kind"});
  const Given shared = extract(own, common);
  problem_table().read(named([&] { return Values(common, shared, "problem"); }), spec);
  for (const Param& p : kind.params)
    if (auto file = own.find(std::string(p.name)); p.allowed.path && file != own.end())
      if (auto* path = std::get_if<std::string>(&file->second))
        *path = absolute(*path, std::filesystem::path(name_).parent_path());
  spec.problem = named([&] { return Values(kind.params, own, "problem"); });
}

void Parser::read_run(const toml::table& run, Spec& spec) const {
  const std::vector<Param>& params = run_table().table();
  only("run", run, names_of(params, {}, {kStepKeys[0], kStepKeys[1], kStepKeys[2], kStepKeys[3]}));
  run_table().read(named([&] { return Values(params, given("run", run, kStepKeys), "run"); }),
                   spec);
  spec.schedule = absolute(spec.schedule, std::filesystem::path(name_).parent_path());
  RunOptions& r = spec.run;
  if (r.participation < 1 && !spec.schedule.empty())
    fail("participation and schedule both say which agents take part: give one of them",
         run.get("schedule"));
  if (r.tail == 0) r.tail = std::min<std::int64_t>(10, r.steps);
  if (r.tail > r.steps)
    fail(fmt::format("run.tail = {} is more than run.steps = {}", r.tail, r.steps),
         run.get("tail"));
  spec.step_size = step("run", run, kStepKeys[0]).value_or(StepRule{});
  spec.step_size_central = step("run", run, kStepKeys[1]);
  spec.step_size_objective = step("run", run, kStepKeys[2]);
  spec.step_size_ratio = step("run", run, kStepKeys[3]);
}

MethodSpec Parser::read_method(const toml::table& t) const {
  MethodSpec m;
  m.kind = required_text(*this, t, "method", "kind", "affpcl");
  const MethodKind& kind = named([&]() -> const MethodKind& { return method_kind(m.kind); });
  const std::vector<Param>& common = method_table().table();
  only("method", t, names_of(kind.params, common, {"kind", kStepKeys[0], kCompress}));
  Given own = given("method", t, std::vector<std::string_view>{"kind", kStepKeys[0], kCompress});
  const Given shared = extract(own, common);
  method_table().read(named([&] { return Values(common, shared, "method"); }), m);
  m.values = named([&] { return Values(kind.params, own, "method"); });
  if (m.name.empty()) m.name = m.kind;
  m.last = m.batch;
  if (m.samples > 0) {
    if (m.period > 1) fail("period and samples both say how long a round is: give one of them", &t);
    const auto samples = static_cast<int>(m.samples);
    m.period = (samples + m.batch - 1) / m.batch;
    m.last = samples - (m.period - 1) * m.batch;
  }
  m.step_size = step("method", t, kStepKeys[0]);
  m.compress = compression("method.compress", t.get(kCompress));
  return m;
}

Spec Parser::spec(const toml::table& root) const {
  only("", root, {"title", "problem", "run", "method", "sweep"});
  Spec spec;
  read_problem(table(root, "problem"), spec);
  static const toml::table kEmpty;
  read_run(root.contains("run") ? table(root, "run") : kEmpty, spec);
  const toml::node* methods = root.get("method");
  if (methods == nullptr)
    fail("there is no [[method]]: add at least one, for example kind = \"affpcl\"");
  if (!methods->is_array_of_tables())
    fail("methods are written [[method]], with two brackets", methods);
  std::set<std::string> names;
  for (const toml::node& node : *methods->as_array()) {
    MethodSpec m = read_method(*node.as_table());
    if (!names.insert(m.name).second)
      fail(fmt::format("two methods are called '{}': give one of them a name of its own", m.name),
           &node);
    spec.methods.push_back(std::move(m));
  }
  return spec;
}

// ---- overrides and sweeps ----

// The table that holds a dotted key such as problem.agents or method.NAME.period, and the key's
// last part. method.KEY means every method.
std::vector<std::pair<toml::table*, std::string>> locate(const Parser& in, toml::table& root,
                                                         const std::string& key) {
  const auto dot = key.find('.');
  if (dot == std::string::npos)
    in.fail(fmt::format("'{}' is not a key like run.seed or problem.agents", key));
  const std::string section = key.substr(0, dot), rest = key.substr(dot + 1);
  if (section == "method") {
    toml::array* methods = root["method"].as_array();
    const auto last = rest.rfind('.');
    const std::string who = last == std::string::npos ? "" : rest.substr(0, last);
    std::vector<std::pair<toml::table*, std::string>> found;
    if (methods != nullptr)
      for (toml::node& node : *methods) {
        toml::table* t = node.as_table();
        if (t == nullptr) continue;
        const std::string name = (*t)["name"].value_or((*t)["kind"].value_or(std::string()));
        if (who.empty() || name == who)
          found.emplace_back(t, last == std::string::npos ? rest : rest.substr(last + 1));
      }
    if (found.empty()) in.fail(fmt::format("'{}' names no method", key));
    return found;
  }
  if (section != "problem" && section != "run") {
    static constexpr std::string_view kSections[] = {"problem", "run", "method"};
    in.fail(fmt::format("'{}' is not a key: it starts with neither problem, run nor method{}", key,
                        hint(section, kSections)));
  }
  if (!root.contains(section)) root.insert(section, toml::table{});
  if (!root[section].is_table())
    in.fail(fmt::format("{} must be a section [{}]", section, section));
  return {{root[section].as_table(), rest}};
}

void assign(const Parser& in, toml::table& root, const std::string& key, const toml::node& value) {
  for (auto& [table, name] : locate(in, root, key))
    value.visit([&, t = table, n = name](const auto& v) { t->insert_or_assign(n, v); });
}

toml::table parse_toml(const Parser& in, std::string_view text, const std::string& what) {
  if (const TomlFault fault = toml_fault(text); fault.line > 0)
    throw BadInput(fmt::format("{} line {}: {}", in.name(), fault.line, fault.what));
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& e) {
    if (what.empty())
      throw BadInput(
          fmt::format("{} line {}: {}", in.name(), e.source().begin.line, e.description()));
    throw BadInput(fmt::format("{}: {} cannot be read: {}", in.name(), what, e.description()));
  }
}

// [sweep] entries in file order; keys written without quotes arrive as nested tables.
void flatten(const Parser& in, const std::string& prefix, const toml::table& table,
             std::vector<std::pair<std::string, const toml::array*>>& out) {
  for (const auto& [key, node] : table) {
    const std::string full = prefix + std::string(key.str());
    if (node.is_table()) {
      flatten(in, full + ".", *node.as_table(), out);
    } else if (node.is_array() && !node.as_array()->empty()) {
      out.emplace_back(full, node.as_array());
    } else {
      in.fail(fmt::format("sweep.\"{}\" must be a list of values", full), &node);
    }
  }
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

// How a swept value is written in results: a step-size table by its schedule, a compression in
// words.
Value label(const Parser& in, const std::string& key, const toml::node& value) {
  const std::string_view last = std::string_view(key).substr(key.find_last_of('.') + 1);
  if (last == kCompress) return to_text(in.compression("sweep." + key, &value));
  if (const toml::table* t = value.as_table())
    return (*t)["schedule"].value_or(std::string("constant"));
  return in.value("sweep." + key, value);
}

void expand(const Parser& in, const toml::table& root,
            const std::vector<std::pair<std::string, const toml::array*>>& sweep, std::size_t depth,
            const std::vector<std::pair<std::string, Value>>& at, std::vector<Setting>& out) {
  if (depth == sweep.size()) {
    out.push_back({at, in.spec(root)});
    return;
  }
  const auto& [keys, values] = sweep[depth];
  for (const toml::node& value : *values) {
    toml::table next = root;
    std::vector<std::pair<std::string, Value>> here = at;
    for (const std::string& key : split(keys, '+')) {
      assign(in, next, key, value);
      here.emplace_back(key, label(in, key, value));
    }
    expand(in, next, sweep, depth + 1, here, out);
  }
}

}  // namespace

std::span<const Param> run_params() { return run_table().table(); }
std::span<const Param> method_params() { return method_table().table(); }
std::span<const Param> compression_params() { return Compression::params().table(); }

Study read_study(const std::string& text, const std::string& name,
                 std::span<const std::string> overrides) {
  const Parser in(name);
  toml::table root = parse_toml(in, text, "");
  for (const std::string& set : overrides) {
    const auto equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      throw BadInput(fmt::format("`set {}` is not of the form key=value", set));
    const std::string key = set.substr(0, equals), raw = set.substr(equals + 1);
    toml::table value;
    try {
      if (toml_fault("v = " + raw).line == 0) value = toml::parse("v = " + raw);
    } catch (const toml::parse_error&) {
    }
    if (value.empty()) value.insert("v", raw);  // a bare word is a text
    if (const auto file = value["v"].value<std::string>(); file && names_file(key))
      value.insert_or_assign("v", absolute(*file, {}));
    assign(in, root, key, *value.get("v"));
  }

  Study study;
  study.name = name;
  std::ostringstream as_json;
  as_json << toml::json_formatter(root);
  study.toml = toml_document(root);
  study.json = as_json.str();
  study.title = root["title"].value_or(std::string());

  std::vector<std::pair<std::string, const toml::array*>> sweep;
  if (root.contains("sweep")) flatten(in, "", in.table(root, "sweep"), sweep);
  std::stable_sort(sweep.begin(), sweep.end(),
                   [](const auto& a, const auto& b) {  // toml++ sorts by name
                     const auto x = a.second->source().begin, y = b.second->source().begin;
                     return std::pair(x.line, x.column) < std::pair(y.line, y.column);
                   });
  in.spec(root);  // complaints about the file itself come before those about a sweep's values
  double combinations = 1;
  for (const auto& entry : sweep) combinations *= static_cast<double>(entry.second->size());
  if (combinations > 1e5)
    in.fail(fmt::format("the sweep has {:.0f} combinations, more than 100000", combinations));
  expand(in, root, sweep, 0, {}, study.settings);
  for (Setting& setting :
       study.settings)  // agents are known only now; a file tells its own number later
    if (setting.spec.problem.all().contains("agents") &&
        !(setting.spec.problem.all().contains("file") &&
          !setting.spec.problem.text("file").empty())) {
      const std::int64_t n = setting.spec.problem.integer("agents");
      for (std::int64_t a : n > 0 ? setting.spec.run.curve_agents : std::vector<std::int64_t>())
        if (a >= n || a < -n)
          in.fail(fmt::format("run.curve_agents holds {}, but there are {} agents", a, n));
    }
  return study;
}

Study read_study_file(const std::string& path, std::span<const std::string> overrides) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  if (!in || !(text << in.rdbuf())) throw BadInput(fmt::format("cannot read the spec {}", path));
  return read_study(text.str(), path, overrides);
}

}  // namespace affpcl
