// What a result says in one sentence: how many samples collaboration saved, who gained, and how the
// worst agent fared. Computed here alone, so that the terminal, summary.json and the page agree.
#pragma once

#include <cstdint>
#include <string>

#include "affpcl/study/study.h"

namespace affpcl {

struct Headline {
  std::string method;  // it is about: the first of kind affpcl, else the first that is not alone
  std::string text;

  // Samples of an agent until the mean curve is first at or below the error of learning alone; 0
  // where it never was. Learning alone is judged by the same rule: it may be there before the end.
  std::int64_t samples = 0, samples_alone = 0;
  // Agents whose interval against learning alone lies below 1, holds it, lies above.
  std::int64_t gained = 0, even = 0, lost = 0;
  std::int64_t worst = -1;  // the agent with the largest ratio to learning alone; -1: none is known
};

Headline headline(const SettingResult& setting);

// Of all settings together; of one setting its own.
std::string headline(const StudyResult& result);

// Every method diverged in every replicate: there is no result.
bool all_diverged(const StudyResult& result);

// "problem.delta_env = problem.delta_obj = 0.3": where in the sweep a setting is.
std::string setting_title(const SettingResult& setting);

}  // namespace affpcl
