#include <fmt/format.h>

#include <memory>

#include "affpcl/base/json.h"
#include "affpcl/density/ratio.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/study/spec.h"
#include "affpcl/study/studies.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

void print_params(std::span<const Param> params) {
  for (const Param& p : params) {
    std::string allowed;
    for (std::string_view c : p.choices)
      allowed += fmt::format("{}{}", allowed.empty() ? "" : " | ", c);
    fmt::print("    {:<16} {}{}\n", p.name, p.doc, allowed.empty() ? "" : " (" + allowed + ")");
    fmt::print("    {:<16} default {}\n", "", to_text(p.fallback));
  }
}

Json params_json(std::span<const Param> params) {
  Json list = Json::array();
  for (const Param& p : params) {
    Json j{{"name", p.name},
           {"doc", p.doc},
           {"default", std::visit([](const auto& v) { return Json(v); }, p.fallback)}};
    if (!p.choices.empty()) j["choices"] = p.choices;
    list.push_back(std::move(j));
  }
  return list;
}

void print_text(bool keys) {
  fmt::print("problems ([problem] kind = …)\n");
  for (const ProblemKind& k : problem_kinds()) {
    fmt::print("  {:<14} {}\n", k.name, k.doc);
    if (keys) print_params(k.params);
  }
  fmt::print("methods ([[method]] kind = …)\n");
  for (const MethodKind& k : method_kinds()) {
    fmt::print("  {:<14} {}\n", k.name, k.doc);
    if (keys) print_params(k.params);
  }
  if (keys) {
    fmt::print("  every method also takes\n");
    print_params(method_params());
    fmt::print("    compress = {{kind = …}}, a table of\n");
    print_params(compression_params());
  }
  fmt::print("density ratios (ratio = …)\n");
  for (const RatioKind& k : ratio_kinds()) fmt::print("  {:<14} {}\n", k.name, k.doc);
  fmt::print("studies (affpcl reproduce …)\n");
  for (const EmbeddedStudy& s : embedded_studies())
    fmt::print("  {:<18} {}\n", s.name, read_study(std::string(s.spec), std::string(s.name)).title);
  if (keys) {
    fmt::print("keys of [run]\n");
    print_params(run_params());
    fmt::print(
        "    {:<16} a number, or {{schedule = \"constant\" | \"log-constant\" | \"diminishing\", "
        "per = \"agent\" | \"min\", value, t0}}\n",
        "step_size");
    fmt::print(
        "    {:<16} default 0.01; step_size_central, _objective, _ratio replace it for one "
        "module\n",
        "");
  } else {
    fmt::print("`affpcl list --keys` shows every key with its default\n");
  }
}

Json as_json() {
  Json j;
  for (const ProblemKind& k : problem_kinds())
    j["problems"].push_back({{"name", k.name}, {"doc", k.doc}, {"params", params_json(k.params)}});
  for (const MethodKind& k : method_kinds())
    j["methods"].push_back({{"name", k.name}, {"doc", k.doc}, {"params", params_json(k.params)}});
  for (const RatioKind& k : ratio_kinds())
    j["ratios"].push_back({{"name", k.name}, {"doc", k.doc}});
  for (const EmbeddedStudy& s : embedded_studies())
    j["studies"].push_back(
        {{"name", s.name}, {"doc", read_study(std::string(s.spec), std::string(s.name)).title}});
  j["run"] = params_json(run_params());
  j["method"] = params_json(method_params());
  j["compress"] = params_json(compression_params());
  return j;
}

}  // namespace

Verb list_verb() {
  struct Options {
    bool keys = false, json = false;
  };
  auto o = std::make_shared<Options>();
  Verb verb{.name = "list",
            .doc = "problems, methods, density ratios, studies, with one line each",
            .examples = "Example:\n  affpcl list --keys",
            .action = [o](const Verb&) {
              if (o->json) {
                fmt::print("{}\n", print_json(as_json(), {.indent = 1}));
              } else {
                print_text(o->keys);
              }
              return int{kOk};
            }};
  verb.flag("--keys", &o->keys, "also every key with its default");
  verb.flag("--json", &o->json, "the same as JSON");
  return verb;
}

}  // namespace affpcl::cli
