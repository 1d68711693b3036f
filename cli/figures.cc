// --figures of reproduce: the package for Python draws (python/affpcl/plot.py).
#include "cli/figures.h"

#include "affpcl/base/error.h"
#include "affpcl/base/python.h"

namespace affpcl::cli {
namespace {

constexpr const char* kWhat =
    "`figures` needs a Python with affpcl and matplotlib: pip install 'affpcl[plot]' (the program "
    "asks $AFFPCL_PYTHON, the active environment, its own, then python3)";

}  // namespace

std::string figure_python(const std::string& out) {
  if (out.empty()) throw BadInput("`figures` needs `out`: the figure is written into that folder");
  for (const std::string& python : pythons())
    if (run_python(python, {"-c", "import matplotlib, affpcl.plot as p; p.main"}, true) == 0)
      return python;
  throw BadInput(kWhat);
}

void draw_figure(const std::string& python, const std::string& folder, const std::string& file) {
  if (run_python(python, {"-m", "affpcl.plot", folder, file}) != 0)
    throw Failure("no figure was drawn: see above; the results are in " + folder);
}

}  // namespace affpcl::cli
