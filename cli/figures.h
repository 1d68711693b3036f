// --figures of reproduce.
#pragma once

#include <string>

namespace affpcl::cli {

// A Python that can draw. BadInput where there is none, or no folder: said before the work.
std::string figure_python(const std::string& out);

// Draws the figure of the result in `folder` into `file`, whose ending is its format.
void draw_figure(const std::string& python, const std::string& folder, const std::string& file);

}  // namespace affpcl::cli
