// What is done with files once they are read: result folders, jobs of a federation, predictions,
// fits, and problems on rows and on finite systems, each as small as it can be.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "affpcl/base/error.h"
#include "affpcl/fit/fit.h"
#include "affpcl/fit/predict.h"
#include "affpcl/output/model_file.h"
#include "affpcl/output/result_folder-inl.h"
#include "affpcl/study/spec.h"
#include "affpcl/study/study.h"
#include "cli/job_file.h"
#include "fuzz/targets.h"

namespace affpcl::fuzz {
namespace {

// Rows as in the tables of seeds.py: agents a, b, c; numbers x and y; texts `kind`; counts n.
const std::string& table() {
  static const std::string path = [] {
    std::string text = "agent,x,kind,y,n\n";
    for (int r = 0; r < 36; ++r)
      text += std::string(1, "abc"[r % 3]) + "," + std::to_string(r % 7 - 3) + "," +
              std::string(1, r % 5 != 0 ? "uvw"[r % 3] : 'u') + "," +
              std::to_string(r * 37 % 11 / 4 + r % 7) + "," + std::to_string(r * 37 % 11 % 5) +
              "\n";
    return scratch_file("table.csv", text);
  }();
  return path;
}

// Files of a result folder one after the other, with a separator between two. An empty one is not
// there.
void read_folder(std::string_view bytes) {
  constexpr char kSeparator = '\x1e';
  constexpr const char* kNames[] = {"summary.json", "curves.csv", "agents.csv", "model.json",
                                    "claims.json"};
  std::string folder;
  for (const char* name : kNames) {
    const std::size_t end = std::min(bytes.find(kSeparator), bytes.size());
    const std::string path = scratch_file(std::string("result/") + name, bytes.substr(0, end));
    folder = std::filesystem::path(path).parent_path().string();
    if (end == 0) std::filesystem::remove(path);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  refusable([&] {
    const ResultFiles result = read_result(folder);
    print_json(page_data(result, 100'000));
    print_json(compare(result, result));
  });
}

void read_job_file(std::string_view bytes) {
  table();  // the data of its sites
  const std::string path = scratch_file("job.toml", bytes);
  refusable([&] {
    const cli::JobFile job = cli::read_job(path);
    job.key_of_data();
    print_json(job.json());
  });
}

void predict_by_model(std::string_view bytes) {
  refusable([&] {
    const Model model = parse_model(std::string(bytes), "model.json");
    const Predictions p = predict(model, {table()});
    if (p.rows != 36) throw std::logic_error("rows are lost");
  });
}

FitOptions one_thread() {
  FitOptions options;
  options.threads = 1;
  options.repeats = 1;
  return options;
}

void join_centre(std::string_view bytes) {
  refusable([&] {
    FitOptions options = one_thread();
    options.centre = std::make_shared<Model>(parse_model(std::string(bytes), "centre.json"));
    options.frame.paths = {table()};
    options.frame.agent = "agent";
    model_json(fit(options).model);
  });
}

// A fit's model can be read again, whatever the numbers of the table are.
void fit_rows(std::string_view bytes) {
  const std::string path = scratch_file("rows.csv", bytes);
  refusable([&] {
    FitOptions options = one_thread();
    options.frame.paths = {path};
    options.frame.target = "y";
    options.frame.agent = "agent";
    const FitResult result = fit(options);
    const std::string text = model_json(result.model);
    fit_summary_json(result);
    try {
      predict(parse_model(text, "model.json"), {path});
    } catch (const BadInput& e) {
      throw std::logic_error(e.what());
    }
  });
}

void fit_log(std::string_view bytes) {
  const std::string path = scratch_file("log.csv", bytes);
  refusable([&] {
    FitOptions options = one_thread();
    options.frame.paths = {path};
    options.td = TdLog::Config{.file = path};
    model_json(fit(options).model);
  });
}

void run(const std::string& spec) {
  refusable([&] {
    StudyOptions options;
    options.threads = 1;
    run_study(read_study(spec, "spec.toml", {}), options);
  });
}

void run_rows(std::string_view bytes) {
  run("[problem]\nkind = 'rows'\ntarget = 'y'\nfile = '" + scratch_file("problem.csv", bytes) +
      "'\n[run]\nsteps = 4\nreplicates = 1\n[[method]]\nkind = 'affpcl'\nratio = 'none'\n"
      "[[method]]\nkind = 'independent'\n");
}

void run_system(std::string_view bytes) {
  const std::string file = scratch_file("system.json", bytes);
  for (const char* method :
       {"'independent'", "'affpcl'", "'affpcl'\nratio = 'counts'\nobjective = 'tabular'"})
    run("[problem]\nkind = 'tabular'\nfile = '" + file +
        "'\n[run]\nsteps = 4\nreplicates = 1\n[[method]]\nkind = " + method + "\n");
}

void run_schedule(std::string_view bytes) {
  run("[problem]\nkind = 'gaussian'\nagents = 3\ndim = 1\n[run]\nsteps = 4\nreplicates = "
      "1\nschedule = '" +
      scratch_file("schedule.csv", bytes) + "'\n[[method]]\nkind = 'affpcl'\n");
}

}  // namespace

std::span<const Target> use_targets() {
  static constexpr Target kAll[] = {
      {"folder", read_folder}, {"job", read_job_file},     {"predict", predict_by_model},
      {"centre", join_centre}, {"fit", fit_rows},          {"log", fit_log},
      {"rows", run_rows},      {"schedule", run_schedule}, {"system", run_system},
  };
  return kAll;
}

}  // namespace affpcl::fuzz
