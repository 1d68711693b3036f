#include "affpcl/output/study_headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/output/fit_headline.h"

namespace affpcl {
namespace {

const MethodResult* alone_of(const SettingResult& s) {
  for (const MethodResult& m : s.methods)
    if (m.kind == "independent") return &m;
  return nullptr;
}

const MethodResult* subject_of(const SettingResult& s) {
  for (const MethodResult& m : s.methods)
    if (m.kind == "affpcl") return &m;
  for (const MethodResult& m : s.methods)
    if (m.kind != "independent") return &m;
  return s.methods.empty() ? nullptr : &s.methods.front();
}

// Samples of an agent until the mean curve is first at or below `error`; 0: it never is. A long
// curve keeps some of its points only; an end below the error counts even if no kept point is.
std::int64_t samples_until(const SettingResult& s, const MethodResult& m, double error) {
  for (const Curve& c : m.curves) {
    if (c.agent >= 0) continue;
    for (std::size_t t = 0; t < c.steps.size(); ++t)
      if (c.mse[t].mean <= error) return static_cast<std::int64_t>(c.steps[t]) * m.batch;
  }
  return m.mse.mean <= error ? s.steps * m.batch : 0;
}

std::string times(double x) { return x < 10 ? fmt::format("{:.1f}", x) : fmt::format("{:.0f}", x); }

void count_agents(const MethodResult& m, Headline& h) {
  for (std::size_t i = 0; i < m.agents.size(); ++i) {
    const Estimate& vs = m.agents[i].vs_independent;
    if (std::isnan(vs.mean)) continue;
    if (h.worst < 0 || vs.mean > m.agents[static_cast<std::size_t>(h.worst)].vs_independent.mean)
      h.worst = static_cast<std::int64_t>(i);
    if (vs.hi < 1) {
      ++h.gained;
    } else if (vs.lo > 1) {
      ++h.lost;
    } else {
      ++h.even;
    }
  }
}

std::string error_words(const MethodResult& m, const Headline& h) {
  std::string text = fmt::format("{} ended with {} of the error of learning alone", m.name,
                                 with_interval(m.vs_independent));
  if (h.samples == 0) return text;
  const double fewer = static_cast<double>(h.samples_alone) / static_cast<double>(h.samples);
  if (fewer >= 1.05)
    return text + fmt::format(" and reached it with {}x fewer samples", times(fewer));
  if (fewer <= 1 / 1.05)
    return text + fmt::format(" and reached it with {}x as many samples", times(1 / fewer));
  return text + " and reached it with as many samples";
}

std::string agents_words(const MethodResult& m, const Headline& h) {
  const std::size_t n = m.agents.size();
  if (h.worst < 0) return "";
  const Estimate& worst = m.agents[static_cast<std::size_t>(h.worst)].vs_independent;
  if (!std::isfinite(m.vs_independent.lo)) {
    const auto smaller = std::count_if(m.agents.begin(), m.agents.end(), [](const AgentResult& a) {
      return a.vs_independent.mean < 1;
    });
    return fmt::format(
        "; {} of {} agents have a smaller error, in one replicate, so without "
        "intervals; worst agent {}",
        smaller, n, with_interval(worst));
  }
  return fmt::format("; {} of {} agents gained{}; worst agent {}", h.gained, n,
                     h.lost > 0 ? fmt::format(", {} lost", h.lost) : "", with_interval(worst));
}

// Where the central objective is made of the model's own features and link, x^c and theta^c are one
// recursion and AffPCL's correction is 0; so it is where one agent is present in a round.
bool is_alone(const MethodResult& m, const MethodResult& alone) {
  return m.kind == "affpcl" && m.agents.size() > 1 && !m.by_replicate.empty() &&
         m.by_replicate == alone.by_replicate;
}

std::string alone_words(const MethodResult& m) {
  return fmt::format(
      "{} was independent learning to the bit: its correction is 0, as where an agent is alone in "
      "its round, or where the central objective has the model's own features and link; a richer "
      "one (outcome channels) can gain",
      m.name);
}

std::int64_t times_diverged(const SettingResult& s, const MethodResult& m) {
  for (const auto& [name, count] : s.diverged)
    if (name == m.name) return count;
  return 0;
}

// The method of the headline diverged; which of the others did not.
std::string diverged_text(const SettingResult& s, const MethodResult& m) {
  std::string others;
  for (const MethodResult& o : s.methods)
    if (std::isfinite(o.mse.mean))
      others += fmt::format("{}{} has an error of {}", others.empty() ? "" : ", ", o.name,
                            with_interval(o.mse));
  return fmt::format("{} diverged in {} of {} replicates; {}", m.name, times_diverged(s, m),
                     s.replicates, others);
}

std::string left_out(const SettingResult& s) {
  return s.used == s.replicates ? ""
                                : fmt::format("; {} of {} replicates diverged and are left out",
                                              s.replicates - s.used, s.replicates);
}

// One sentence over all settings, for sweeps.
std::string sweep_words(const StudyResult& result) {
  const SettingResult *best = nullptr, *worst = nullptr;
  const auto ratio = [](const SettingResult& s) { return subject_of(s)->vs_independent; };
  std::int64_t smaller = 0, known = 0, agents = 0, gained = 0, lost = 0;
  for (const SettingResult& s : result.settings) {
    if (subject_of(s) == nullptr || std::isnan(ratio(s).mean)) continue;
    ++known;
    smaller += ratio(s).mean < 1;
    if (best == nullptr || ratio(s).mean < ratio(*best).mean) best = &s;
    if (worst == nullptr || ratio(s).mean > ratio(*worst).mean) worst = &s;
    const Headline h = headline(s);
    agents += static_cast<std::int64_t>(subject_of(s)->agents.size());
    gained += h.gained;
    lost += h.lost;
  }
  if (all_diverged(result))
    return fmt::format("all replicates of all {} settings diverged: there is nothing to compare",
                       result.settings.size());
  if (known == 0)
    return fmt::format("{} settings; learning alone is not among the methods, so no gain is known",
                       result.settings.size());
  return fmt::format(
      "{} had a smaller error than learning alone in {} of {} settings: {} of it at best ({}), {} "
      "at worst ({}); {} of {} agents gained, {} lost",
      subject_of(*best)->name, smaller, known, with_interval(ratio(*best)), setting_title(*best),
      with_interval(ratio(*worst)), setting_title(*worst), gained, agents, lost);
}

}  // namespace

std::string setting_title(const SettingResult& s) {
  std::string text;
  for (std::size_t i = 0; i < s.at.size(); ++i) {
    const bool joined = i + 1 < s.at.size() && s.at[i].second == s.at[i + 1].second;
    text += joined ? s.at[i].first + " = "
                   : fmt::format("{} = {}{}", s.at[i].first, to_text(s.at[i].second),
                                 i + 1 < s.at.size() ? ", " : "");
  }
  return text;
}

Headline headline(const SettingResult& s) {
  Headline h;
  const MethodResult *m = subject_of(s), *alone = alone_of(s);
  if (m == nullptr) {
    h.text = "there is no method here";
    return h;
  }
  h.method = m->name;
  if (s.used == 0) {
    h.text = fmt::format("all {} replicates diverged: there is nothing to compare", s.replicates);
  } else if (!std::isfinite(m->mse.mean) && times_diverged(s, *m) > 0) {
    h.text = diverged_text(s, *m);
    return h;
  } else if (!std::isfinite(m->mse.mean)) {
    h.text = "the truth is not known here, so there are no errors to compare";
  } else if (alone == nullptr || alone == m) {
    h.text = fmt::format(
        "{} has an error of {}; {}", m->name, with_interval(m->mse),
        alone == m ? "no other method was run" : "learning alone was not run, so no gain is known");
  } else {
    count_agents(*m, h);
    h.samples = samples_until(s, *m, alone->mse.mean);
    h.samples_alone = samples_until(s, *alone, alone->mse.mean);
    h.text = is_alone(*m, *alone) ? alone_words(*m) : error_words(*m, h) + agents_words(*m, h);
  }
  if (s.used > 0) h.text += left_out(s);
  return h;
}

bool all_diverged(const StudyResult& result) {
  return !result.settings.empty() &&
         std::all_of(result.settings.begin(), result.settings.end(),
                     [](const SettingResult& s) { return s.replicates > 0 && s.used == 0; });
}

std::string headline(const StudyResult& result) {
  if (result.settings.empty()) return "nothing was finished";
  const std::string text =
      result.settings.size() == 1 ? headline(result.settings.front()).text : sweep_words(result);
  return result.complete ? text : "interrupted, so of what was finished: " + text;
}

}  // namespace affpcl
