// model.json: a model as a file that people can read and programs can check.
#pragma once

#include <string>

#include "affpcl/table/model.h"

namespace affpcl {

inline constexpr int kModelVersion = 1;

std::string model_json(const Model& model);

// From a file, or the model.json of a folder. BadInput, in one sentence, if it is something else.
Model read_model(const std::string& path);
Model parse_model(const std::string& text, const std::string& path);  // which complaints name

// A whole file. BadInput if it cannot be read.
std::string content_of(const std::string& path);

// The summary.json of a fit.
std::string fit_summary_json(const FitResult& result);

}  // namespace affpcl
