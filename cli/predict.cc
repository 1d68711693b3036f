#include "affpcl/fit/predict.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"
#include "affpcl/fit/model_file.h"
#include "affpcl/study/files.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

std::vector<std::string> notes_of(const Predictions& p) {
  std::vector<std::string> notes;
  if (!p.unseen.empty()) {
    std::string names;
    for (std::size_t i = 0; i < p.unseen.size() && i < 5; ++i)
      names += (i > 0 ? ", " : "") + p.unseen[i];
    if (p.unseen.size() > 5) names += ", …";
    notes.push_back(fmt::format(
        "{} of {} rows are of {} the model does not know ({}): the central model, with wider "
        "intervals",
        p.unseen_rows, p.rows,
        p.unseen.size() == 1 ? "an agent" : fmt::format("{} agents", p.unseen.size()), names));
  }
  if (p.filled > 0)
    notes.push_back(fmt::format("{} blanks filled with the mean of their column", p.filled));
  if (p.blank > 0) notes.push_back(fmt::format("{} rows have blanks and no prediction", p.blank));
  if (p.new_texts > 0)
    notes.push_back(
        fmt::format("{} texts were not in the fitted rows and count as average", p.new_texts));
  return notes;
}

}  // namespace

Verb predict_verb(CLI::App& app) {
  struct Options {
    std::string model, out;
    std::vector<std::string> data, beside;
    bool force = false, quiet = false, json = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("predict", "predictions, each row by its agent's model");
  verb->add_option("model", o->model, "model.json, or the folder that holds it")
      ->required()
      ->type_name("MODEL");
  verb->add_option(
          "data", o->data,
          "rows to predict, with the columns the model was fitted on, in any format that fit reads")
      ->required()
      ->type_name("DATA…");
  verb->add_option("--with", o->beside,
                   "a file with more columns of the same rows; may be given again")
      ->allow_extra_args(false)
      ->type_name("FILE");
  verb->add_option("--out", o->out,
                   "file for the rows with their predictions (default: standard output)")
      ->type_name("FILE.csv");
  verb->add_flag("--force", o->force, "replace the file if it exists");
  verb->add_flag("--json", o->json,
                 "print counts and, where the target is known, scores as JSON; needs --out");
  verb->add_flag("--quiet", o->quiet, "no notes");
  verb->footer("Example:\n  affpcl predict model new_rows.csv --out predictions.csv");
  return {verb, [o] {
            if (o->json && o->out.empty())
              throw BadInput("--json needs --out: the predictions have to go somewhere");
            std::error_code ignored;
            if (!o->out.empty()) {
              if (!o->force && std::filesystem::is_regular_file(o->out, ignored))
                throw BadInput(fmt::format(
                    "{} exists already; choose another --out, or replace it with --force", o->out));
              refuse_unwritable(o->out);
            }
            const Model model = read_model(o->model);
            const Predictions p = predict(model, data_files(o->data), o->beside);
            const bool classify = !model.encoding.classes.empty();
            if (o->out.empty()) {
              std::fwrite(p.csv.data(), 1, p.csv.size(), stdout);
            } else {
              write_file(o->out, p.csv);
            }
            const std::vector<std::string> notes = notes_of(p);
            if (o->json) {
              Json score;
              if (p.scored > 0 && classify)
                score = {{"rows", p.scored}, {"log_loss", p.loss}, {"accuracy", p.accuracy}};
              if (p.scored > 0 && !classify)
                score = {{"rows", p.scored}, {"mse", p.loss}, {"r2", p.r2}};
              const Json all{{"rows", p.rows},
                             {"unseen_agents", p.unseen},
                             {"unseen_rows", p.unseen_rows},
                             {"notes", notes},
                             {"score", std::move(score)}};
              fmt::print("{}\n", print_json(all, {.indent = 1}));
            } else if (!o->quiet) {
              std::FILE* const to =
                  o->out.empty() ? stderr : stdout;  // rows alone go where rows go
              for (const std::string& note : notes) fmt::print(to, "note: {}\n", note);
              if (p.scored > 0 && classify)
                fmt::print(to, "log loss {:.4g}, accuracy {:.4g} on {} rows with a target\n",
                           p.loss, p.accuracy, p.scored);
              if (p.scored > 0 && !classify)
                fmt::print(to, "mean squared error {:.4g}, R^2 {:.4g} on {} rows with a target\n",
                           p.loss, p.r2, p.scored);
              if (!o->out.empty()) fmt::print("{} predictions in {}\n", p.rows, o->out);
            }
            return int{kOk};
          }};
}

}  // namespace affpcl::cli
