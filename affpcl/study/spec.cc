#include "affpcl/study/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "affpcl/algorithm/algorithm.h"
#include "affpcl/base/error.h"
#include "affpcl/problem/catalogue.h"

namespace affpcl {
namespace {

using Given = std::map<std::string, Value>;

const std::vector<Param>& run_table() {
  const RunOptions r;
  static const std::vector<Param> kParams = {
      {.name = "steps",
       .doc = "samples (or batches) per agent",
       .fallback = r.steps,
       .lo = 1,
       .hi = 4e9},
      {.name = "replicates",
       .doc = "independent repetitions",
       .fallback = std::int64_t{10},
       .lo = 1,
       .hi = 1e7},
      {.name = "first",
       .doc = "number of the first replicate: a study can be split, or go on where another ended",
       .fallback = std::int64_t{0},
       .lo = 0,
       .hi = 1e9},
      {.name = "seed", .doc = "decides all random numbers", .fallback = std::int64_t{1}, .lo = 0},
      {.name = "tail",
       .doc = "steps averaged for the summary; 0: the last ten, or all if fewer",
       .fallback = std::int64_t{0},
       .lo = 0},
      {.name = "iterate",
       .doc = "what is scored: the last iterate, lem:step's weighted average, or the second half's",
       .fallback = "last",
       .choices = {"last", "weighted", "polyak"}},
      {.name = "curve_agents",
       .doc = "agents whose own curve is kept; -1 is the last",
       .fallback = std::vector<double>{0, -1}},
      {.name = "curve_points",
       .doc = "a longer run keeps so many evenly spaced points",
       .fallback = r.curve_points,
       .lo = 1,
       .hi = 1e7},
      {.name = "diverged_above",
       .doc = "error, in units of mean |x*|^2, beyond which a run is given up",
       .fallback = r.diverged_above,
       .lo = 1,
       .hi = 1e300},
  };
  return kParams;
}

const std::vector<Param>& method_table() {
  static const std::vector<Param> kParams = {
      {.name = "name", .doc = "how results call it; the kind if left out", .fallback = ""},
      {.name = "period",
       .doc = "local steps between two rounds of communication (K)",
       .fallback = std::int64_t{1},
       .lo = 1,
       .hi = 1e6},
      {.name = "batch",
       .doc = "samples averaged in one local step",
       .fallback = std::int64_t{1},
       .lo = 1,
       .hi = 1e6},
      {.name = "samples",
       .doc = "instead of period: samples between two rounds, in steps of `batch`, the last one "
              "with what is left",
       .fallback = std::int64_t{0},
       .lo = 0,
       .hi = 1e9},
  };
  return kParams;
}

constexpr std::string_view kStepKeys[] = {"step_size", "step_size_central", "step_size_objective",
                                          "step_size_ratio"};

// ---- TOML to values ----

// A node as a person would write it.
std::string written(const toml::node& node) {
  if (const auto* x = node.as_floating_point()) return to_text(x->get());
  if (const auto* list = node.as_array()) {
    std::string text;
    for (const toml::node& item : *list) text += (text.empty() ? "" : ", ") + written(item);
    return "[" + text + "]";
  }
  std::ostringstream out;
  node.visit([&](const auto& n) { out << n; });
  return out.str();
}

std::string allowed_words(const std::vector<std::string_view>& words) {
  return fmt::format("; allowed: {}", fmt::join(words, ", "));
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
                         what, written(n)),
             &n);
      return *x;
    };
    const auto choice = [&](const toml::table& in, const char* name,
                            const std::vector<std::string_view>& allowed) {
      const toml::node* n = in.get(name);
      if (n == nullptr) return std::string(allowed.front());
      const auto word = n->is_string() ? n->as_string()->get() : std::string();
      if (std::find(allowed.begin(), allowed.end(), word) == allowed.end())
        fail(fmt::format("{}.{} = {} is not known{}", full, name, written(*n),
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

  Spec spec(const toml::table& root) const;
  const std::string& name() const { return name_; }

 private:
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
      if (p.path && key == "problem." + std::string(p.name)) return true;
  return false;
}

std::vector<std::string_view> names_of(std::span<const Param> a, std::span<const Param> b = {},
                                       std::initializer_list<std::string_view> more = {}) {
  std::vector<std::string_view> names(more);
  for (const Param& p : a) names.push_back(p.name);
  for (const Param& p : b) names.push_back(p.name);
  return names;
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

Spec Parser::spec(const toml::table& root) const {
  only("", root, {"title", "problem", "run", "method", "sweep"});
  Spec spec;
  const auto named = [this](auto&& work) {  // complaints from below do not know the file
    try {
      return work();
    } catch (const BadInput& e) {
      const std::string what = e.what();
      throw BadInput(what.rfind(name_, 0) == 0 ? what : name_ + ": " + what);
    }
  };

  const toml::table& problem = table(root, "problem");
  spec.problem_kind = required_text(*this, problem, "problem", "kind", "gaussian");
  const ProblemKind& kind =
      named([&]() -> const ProblemKind& { return problem_kind(spec.problem_kind); });
  static const std::vector<Param> kProblem = {
      {.name = "redraw",
       .doc = "a new system per replicate, or one system and new samples",
       .fallback = "system",
       .choices = {"system", "samples"}}};
  only("problem", problem, names_of(kind.params, kProblem, {"kind"}));
  Given own = given("problem", problem, std::vector<std::string_view>{"kind", "redraw"}), shared;
  if (problem.contains("redraw"))
    shared["redraw"] = value("problem.redraw", *problem.get("redraw"));
  spec.redraw_system =
      named([&] { return Values(kProblem, shared, "problem"); }).text("redraw") == "system";
  for (const Param& p : kind.params)
    if (auto file = own.find(std::string(p.name)); p.path && file != own.end())
      if (auto* path = std::get_if<std::string>(&file->second))
        *path = absolute(*path, std::filesystem::path(name_).parent_path());
  spec.problem = named([&] { return Values(kind.params, own, "problem"); });

  static const toml::table kEmpty;
  const toml::table& run = root.contains("run") ? table(root, "run") : kEmpty;
  only("run", run,
       names_of(run_table(), {}, {kStepKeys[0], kStepKeys[1], kStepKeys[2], kStepKeys[3]}));
  const Values r = named([&] { return Values(run_table(), given("run", run, kStepKeys), "run"); });
  spec.run.steps = r.integer("steps");
  spec.replicates = r.integer("replicates");
  spec.first = r.integer("first");
  spec.run.seed = static_cast<std::uint64_t>(r.integer("seed"));
  spec.run.tail =
      r.integer("tail") > 0 ? r.integer("tail") : std::min<std::int64_t>(10, spec.run.steps);
  if (spec.run.tail > spec.run.steps)
    fail(fmt::format("run.tail = {} is more than run.steps = {}", spec.run.tail, spec.run.steps),
         run.get("tail"));
  spec.run.iterate = r.text("iterate") == "weighted" ? RunOptions::Iterate::kWeighted
                     : r.text("iterate") == "polyak" ? RunOptions::Iterate::kPolyak
                                                     : RunOptions::Iterate::kLast;
  spec.run.curve_points = r.integer("curve_points");
  spec.run.diverged_above = r.number("diverged_above");
  for (double a : r.list("curve_agents")) {
    if (a != std::floor(a))
      fail(fmt::format("run.curve_agents holds {}, which is not a whole number", a),
           run.get("curve_agents"));
    spec.run.curve_agents.push_back(static_cast<std::int64_t>(a));
  }
  spec.step_size = step("run", run, kStepKeys[0]).value_or(StepRule{});
  spec.step_size_central = step("run", run, kStepKeys[1]);
  spec.step_size_objective = step("run", run, kStepKeys[2]);
  spec.step_size_ratio = step("run", run, kStepKeys[3]);

  const toml::node* methods = root.get("method");
  if (methods == nullptr)
    fail("there is no [[method]]: add at least one, for example kind = \"affpcl\"");
  if (!methods->is_array_of_tables())
    fail("methods are written [[method]], with two brackets", methods);
  std::set<std::string> names;
  for (const toml::node& node : *methods->as_array()) {
    const toml::table& t = *node.as_table();
    MethodSpec m;
    m.kind = required_text(*this, t, "method", "kind", "affpcl");
    const MethodKind& mk = named([&]() -> const MethodKind& { return method_kind(m.kind); });
    only("method", t, names_of(mk.params, method_table(), {"kind", kStepKeys[0]}));
    Given all = given("method", t, std::vector<std::string_view>{"kind", kStepKeys[0]}), common;
    for (const Param& p : method_table())
      if (auto moved = all.extract(std::string(p.name))) common.insert(std::move(moved));
    const Values c = named([&] { return Values(method_table(), common, "method"); });
    m.values = named([&] { return Values(mk.params, all, "method"); });
    m.name = c.text("name").empty() ? m.kind : c.text("name");
    m.period = static_cast<int>(c.integer("period"));
    m.last = m.batch = static_cast<int>(c.integer("batch"));
    if (const auto samples = static_cast<int>(c.integer("samples")); samples > 0) {
      if (m.period > 1)
        fail("period and samples both say how long a round is: give one of them", &node);
      m.period = (samples + m.batch - 1) / m.batch;
      m.last = samples - (m.period - 1) * m.batch;
    }
    m.step_size = step("method", t, kStepKeys[0]);
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

// How a swept value is written in results: a step-size table by its schedule.
Value label(const Parser& in, const std::string& key, const toml::node& value) {
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

std::span<const Param> run_params() { return run_table(); }
std::span<const Param> method_params() { return method_table(); }

Study read_study(const std::string& text, const std::string& name,
                 std::span<const std::string> overrides) {
  const Parser in(name);
  toml::table root = parse_toml(in, text, "");
  for (const std::string& set : overrides) {
    const auto equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      throw BadInput(fmt::format("--set {} is not of the form key=value", set));
    const std::string key = set.substr(0, equals), raw = set.substr(equals + 1);
    toml::table value;
    try {
      value = toml::parse("v = " + raw);
    } catch (const toml::parse_error&) {
      value.insert("v", raw);  // a bare word is a text
    }
    if (const auto file = value["v"].value<std::string>(); file && names_file(key))
      value.insert_or_assign("v", absolute(*file, {}));
    assign(in, root, key, *value.get("v"));
  }

  Study study;
  study.name = name;
  std::ostringstream as_toml, as_json;
  as_toml << root;
  as_json << toml::json_formatter(root);
  study.toml = as_toml.str();
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
      for (std::int64_t a : setting.spec.run.curve_agents)
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
