#include "affpcl/fit/predict.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/base/json.h"
#include "affpcl/data/inputs.h"
#include "affpcl/data/tables.h"
#include "affpcl/output/model_file.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

std::string listed(const std::vector<std::string>& all) {
  std::string names;
  for (std::size_t i = 0; i < all.size() && i < 5; ++i) names += (i > 0 ? ", " : "") + all[i];
  return all.size() > 5 ? names + ", …" : names;
}

std::vector<std::string> notes_of(const Predictions& p) {
  std::vector<std::string> notes;
  if (!p.unseen.empty()) {
    notes.push_back(fmt::format(
        "{} of {} rows are of {} the model does not know ({}): the model of unseen agents, "
        "with wider intervals",
        p.unseen_rows, p.rows,
        p.unseen.size() == 1 ? "an agent" : fmt::format("{} agents", p.unseen.size()),
        listed(p.unseen)));
  }
  if (!p.unseen_levels.empty())
    notes.push_back(fmt::format(
        "{} of {} rows are of {} of the second factor that the model does not know ({}): effect 0, "
        "with wider intervals",
        p.unseen_level_rows, p.rows,
        p.unseen_levels.size() == 1 ? "a level" : fmt::format("{} levels", p.unseen_levels.size()),
        listed(p.unseen_levels)));
  if (p.filled > 0)
    notes.push_back(fmt::format("{} blanks filled with the mean of their column", p.filled));
  if (p.blank > 0) notes.push_back(fmt::format("{} rows have blanks and no prediction", p.blank));
  if (p.new_texts > 0)
    notes.push_back(
        fmt::format("{} texts were not in the fitted rows and count as average; the first: {}",
                    p.new_texts, p.first_new_text));
  return notes;
}

struct Options {
  std::string model, out;
  std::vector<std::string> data, beside;
  double level = kConfidence;
  bool force = false, quiet = false, json = false;
};

// Refused before the work, not after.
void refuse_output(const Options& o) {
  if (o.json && o.out.empty())
    throw BadInput("--json needs --out: the predictions have to go somewhere");
  if (o.out.empty()) return;
  std::error_code ignored;
  if (!o.force && std::filesystem::is_regular_file(o.out, ignored))
    throw BadInput(
        fmt::format("{} exists already; choose another --out, or replace it with --force", o.out));
  refuse_unwritable(o.out);
}

// What the loss of numbers is called.
const char* loss_name(const Encoding& e) {
  return e.numeric() ? "mse" : e.family == Family::kBinomial ? "log_loss" : "deviance";
}

Json as_json(const Predictions& p, const Encoding& e) {
  const bool classify = !e.classes.empty();
  Json score;
  if (p.scored > 0 && classify)
    score = {{"rows", p.scored}, {"log_loss", p.loss}, {"accuracy", p.accuracy}};
  if (p.scored > 0 && !classify) {
    score = {{"rows", p.scored}, {loss_name(e), p.loss}};
    if (e.numeric()) score["r2"] = p.r2;
  }
  return {{"rows", p.rows},
          {"unseen_agents", p.unseen},
          {"unseen_rows", p.unseen_rows},
          {"notes", notes_of(p)},
          {"score", std::move(score)}};
}

void print_text(const Predictions& p, const Encoding& e, const std::string& out) {
  const bool classify = !e.classes.empty();
  std::FILE* const to = out.empty() ? stderr : stdout;  // rows alone go where rows go
  for (const std::string& note : notes_of(p)) fmt::print(to, "note: {}\n", note);
  if (p.scored > 0 && classify)
    fmt::print(to, "log loss {:.4g}, accuracy {:.4g} on {} rows with a target\n", p.loss,
               p.accuracy, p.scored);
  if (p.scored > 0 && !classify && !e.numeric())
    fmt::print(to, "{} {:.4g} on {} rows with a target\n",
               e.family == Family::kBinomial ? "log loss" : "deviance", p.loss, p.scored);
  if (p.scored > 0 && !classify && e.numeric())
    fmt::print(to, "mean squared error {:.4g}, R^2 {:.4g} on {} rows with a target\n", p.loss, p.r2,
               p.scored);
  if (!out.empty()) fmt::print("{} predictions in {}\n", p.rows, out);
}

int predict_rows(const Options& o) {
  refuse_output(o);
  const InputScope inputs(&interruption());
  const Model model = read_model(o.model);
  const Predictions p = predict(model, data_files(o.data), o.beside, o.level);
  take_time_to_write();
  if (o.out.empty()) {
    std::fwrite(p.csv.data(), 1, p.csv.size(), stdout);
  } else {
    write_file(o.out, p.csv);
  }
  if (o.json) {
    fmt::print("{}\n", print_json(as_json(p, model.encoding), {.indent = 1}));
  } else if (!o.quiet) {
    print_text(p, model.encoding, o.out);
  }
  return kOk;
}

}  // namespace

void add_level(Verb& verb, double& level) {
  verb.option("--level", &level, "LEVEL", "coverage of intervals, such as .95",
              {.lo = 0.01, .hi = 0.9999});
}

Verb predict_verb() {
  auto o = std::make_shared<Options>();
  Verb verb{.name = "predict",
            .doc = "predictions, each row by its agent's model",
            .examples = "Example:\n  affpcl predict model new_rows.csv --out predictions.csv",
            .action = [o](const Verb&) { return predict_rows(*o); }};
  verb.option("model", &o->model, "MODEL", "model.json, or the folder that holds it",
              {.required = true});
  verb.option(
      "data", &o->data, "DATA…",
      "rows to predict, with the columns the model was fitted on, in any format that fit reads",
      {.required = true});
  verb.option("--with", &o->beside, "FILE",
              "a file with more columns of the same rows; may be given again");
  verb.option("--out", &o->out, "FILE.csv",
              "file for the rows with their predictions (default: standard output)");
  add_level(verb, o->level);
  verb.flag("--force", &o->force, "replace the file if it exists");
  verb.flag("--json", &o->json,
            "print counts and, where the target is known, scores as JSON; needs --out");
  verb.flag("--quiet", &o->quiet, "no notes");
  return verb;
}

}  // namespace affpcl::cli
