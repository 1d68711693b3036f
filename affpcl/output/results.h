// The result folder: summary.json, curves.csv, agents.csv. Their keys and columns are a contract.
#pragma once

#include <string>

#include "affpcl/base/files.h"
#include "affpcl/study/study.h"

namespace affpcl {

std::string summary_json(const Study& study, const StudyResult& result, const std::string& command);
std::string curves_csv(const StudyResult& result);
std::string agents_csv(const StudyResult& result);
std::string solutions_csv(const StudyResult& result);  // empty where agents have no names

// All of them, at once or not at all.
void write_results(ResultFolder& folder, const Study& study, const StudyResult& result,
                   const std::string& command);

// What a folder holds of this study; kOther: something else, or nothing.
enum class Held { kOther, kIncomplete, kComplete };
Held held_result(const std::string& folder, const Study& study);

}  // namespace affpcl
