// CLI11 is included here alone, because it takes 8 s to compile.
#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>
#include <type_traits>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/base/join.h"
#include "affpcl/data/field.h"

namespace affpcl::cli {
namespace {

// A bound as a T: one beyond the whole numbers of T, such as infinity, is the last of them.
template <class T>
T bound(double x) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_integral_v<T>) {
    if (x <= static_cast<double>(Limits::min())) return Limits::min();
    if (x >= static_cast<double>(Limits::max())) return Limits::max();
  }
  return static_cast<T>(x);
}

// Adds an option to `app`, by the type of its target.
struct Adder {
  CLI::App& app;
  const Option& option;

  CLI::Option* operator()(bool* to) const { return app.add_flag(option.name, *to, option.doc); }

  CLI::Option* operator()(MapEntry& to) const {
    return std::visit([&](auto& value) { return (*this)(&value); }, to.value);
  }

  template <class T>
  CLI::Option* operator()(T* to) const {
    const Rules& r = option.rules;
    CLI::Option* const added = app.add_option(option.name, *to, option.doc);
    if constexpr (std::is_arithmetic_v<T>) {
      if (std::isfinite(r.lo) || std::isfinite(r.hi))
        added->check(CLI::Range(bound<T>(r.lo), bound<T>(r.hi)));
    }
    if (!r.choices.empty()) added->check(CLI::IsMember(r.choices));
    if (r.commas && !std::is_same_v<T, std::vector<std::string>>) added->delimiter(',');
    if (r.most > 0) added->expected(1, r.most);
    if (option.name.starts_with("-")) added->allow_extra_args(false);
    return added->required(r.required)->type_name(option.type);
  }
};

void add_verb(CLI::App& app, Verb& verb) {
  CLI::App* const whole = app.add_subcommand(verb.name, verb.doc);
  whole->footer(verb.examples);
  std::map<std::string, CLI::App*> groups = {{"", whole}};
  for (Option& option : verb.options) {
    CLI::App*& group = groups[option.group];
    if (group == nullptr) group = whole->add_option_group(option.group);
    std::visit(Adder{*group, option}, option.to);
  }
}

// The long names of a verb's options and of its groups' options, without dashes.
std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  const auto is_group = [](const CLI::App* part) { return part->get_name().empty(); };
  for (const CLI::App* group : verb.get_subcommands(is_group))
    for (const std::string& name : option_names(*group)) names.push_back(name);
  return names;
}

// What to say about the first unknown option; empty where all are known.
std::string unknown_option(const CLI::App& app) {
  std::vector<const CLI::App*> parts = {&app};
  for (const CLI::App* verb : app.get_subcommands()) parts.push_back(verb);
  for (const CLI::App* part : parts)
    for (const std::string& word : part->remaining()) {
      if (!word.starts_with("-")) continue;
      const std::string given = word.substr(0, word.find('='));
      const std::vector<std::string> names = option_names(*part);
      const std::string nearest =
          did_you_mean(given.substr(std::min(given.find_first_not_of('-'), given.size())),
                       std::vector<std::string_view>(names.begin(), names.end()));
      const std::string verb = part == &app ? "affpcl" : "affpcl " + part->get_name();
      return fmt::format("there is no option '{}'; {}", given,
                         nearest.empty() ? verb + " --help lists the options"
                                         : fmt::format("did you mean '--{}'?", nearest));
    }
  return "";
}

// A,B given once or several times, with quotes around a name that holds a comma.
void split_names(const std::string& option, std::vector<std::string>& list) {
  std::vector<std::string> names;
  for (const std::string& text : list)
    for (std::string& name : names_in(text, option)) names.push_back(std::move(name));
  list = std::move(names);
}

// CLI11 would only say that a verb is missing.
void refuse_unknown_verb(const std::string& word, const std::vector<Verb>& verbs) {
  std::vector<std::string_view> known;
  for (const Verb& verb : verbs) known.push_back(verb.name);
  if (std::find(known.begin(), known.end(), word) == known.end())
    throw BadInput(fmt::format("there is no verb '{}'{}", word, hint(word, known)));
}

}  // namespace

void Verb::option(const std::string& option_name, Target to, const std::string& type,
                  const std::string& text, const Rules& rules) {
  options.push_back({option_name, std::move(to), type, text, rules, group});
}

void Verb::option(const Param& param, std::map<std::string, Value>& values) {
  static constexpr const char* kTypes[] = {"", "N", "NUMBER", "TEXT", "A,B"};
  std::string dashed = fmt::format("--{}", param.name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  const std::string type =
      param.choices.empty() ? kTypes[param.fallback.index()] : join(param.choices, "|");
  option(dashed, MapEntry{&values, std::string(param.name), param.fallback}, type,
         fmt::format("{} (default: {})", param.doc, to_text(param.fallback)),
         {.commas = std::holds_alternative<std::vector<double>>(param.fallback),
          .choices = {param.choices.begin(), param.choices.end()},
          .lo = param.allowed.lo,
          .hi = param.allowed.hi});
}

void Verb::flag(const std::string& option_name, bool* to, const std::string& text) {
  option(option_name, to, "", text);
}

bool Verb::given(std::string_view option_name) const {
  return std::any_of(options.begin(), options.end(),
                     [&](const Option& o) { return o.name == option_name && o.given > 0; });
}

Request read_command_line(int argc, char** argv, Program& program) {
  if (argc > 1 && argv[1][0] != '-') refuse_unknown_verb(argv[1], program.verbs);
  CLI::App app(program.doc);
  app.set_version_flag("--version", program.version);
  app.require_subcommand(1);
  app.footer(program.footer);
  for (Verb& verb : program.verbs) add_verb(app, verb);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::ostringstream text;
    if (app.exit(e, text, text) == 0) return {.text = text.str()};  // --help, --version
    const std::string unknown = unknown_option(app);
    throw BadInput(fmt::format("{}{}", unknown.empty() ? e.what() : unknown,
                               argc == 1 ? "; affpcl --help lists the verbs" : ""));
  }
  const std::string chosen = app.get_subcommands().front()->get_name();
  const auto verb = std::find_if(program.verbs.begin(), program.verbs.end(),
                                 [&](const Verb& v) { return v.name == chosen; });
  for (Option& option : verb->options) {
    if (auto* list = std::get_if<std::vector<std::string>*>(&option.to);
        list != nullptr && option.rules.commas)
      split_names(option.name, **list);
    option.given = app.get_subcommand(chosen)->count(option.name);
    if (auto* to = std::get_if<MapEntry>(&option.to); to != nullptr && option.given > 0)
      (*to->values)[to->key] = to->value;
  }
  return {.verb = &*verb};
}

}  // namespace affpcl::cli
