// What is written for people: pages, and the affinity of tables.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>

#include "affpcl/affinity/table_affinity.h"
#include "affpcl/fit/arrays.h"
#include "affpcl/output/affinity_file.h"
#include "affpcl/output/page.h"
#include "affpcl/table/frame.h"
#include "affpcl/table/known.h"
#include "python/core/core.h"

namespace affpcl::python {
namespace {

// summary.json, affinity.csv and matrix.csv by name, as the command line writes them.
using Files = std::vector<std::pair<std::string, std::string>>;

Files pilot_files(const FitOptions& fit, double share, const std::function<Frame()>& frame) {
  return interruptible([&](const std::atomic<bool>&) {
    PilotOptions o{.share = share, .seed = fit.frame.seed, .threads = fit.threads};
    o.centre = fit.centre;
    const PilotResult result = pilot(frame(), o);
    Files files = {{"summary.json",
                    pilot_summary_json(
                        result, {.share = share, .seed = o.seed, .command = "affpcl.affinity"})},
                   {"affinity.csv", pilot_agents_csv(result)}};
    if (!result.distance.empty()) files.emplace_back("matrix.csv", pilot_matrix_csv(result));
    return files;
  });
}

FrameOptions linear(const FitOptions& fit) {
  if (fit.centre) return join_options(fit.frame, *fit.centre);
  FrameOptions frame = fit.frame;
  if (frame.family == "auto") frame.family = "gaussian";  // affinity is that of linear models
  return frame;
}

}  // namespace

void bind_output(nb::module_& m) {
  m.def(
      "report_page",
      [](const std::vector<std::string>& folders) {
        const nb::gil_scoped_release free;
        return report_page(folders);
      },
      nb::arg("folders"), "The page of a result folder, or of two compared.");
  m.def(
      "affinity_files",
      [](const FitOptions& fit, double share) {
        return pilot_files(fit, share, [&] { return build_frame(linear(fit)); });
      },
      nb::arg("options"), nb::arg("share"));
  m.def(
      "affinity_table",
      [](const DataTable& table, const FitOptions& fit, double share) {
        return pilot_files(fit, share, [&] { return build_frame(table, linear(fit)); });
      },
      nb::arg("table"), nb::arg("options"), nb::arg("share"));
}

}  // namespace affpcl::python
