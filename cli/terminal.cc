#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <iterator>

#include "affpcl/study/headline.h"

namespace affpcl::cli {
namespace {

std::atomic<bool> g_stop{false};

extern "C" void on_signal(int signal) {
  if (g_stop.exchange(true)) _exit(128 + signal);
}

std::string number(double x) { return std::isfinite(x) ? fmt::format("{:.4g}", x) : "-"; }

std::string interval(const Estimate& e) {
  return std::isfinite(e.lo) ? fmt::format("[{}, {}]", number(e.lo), number(e.hi)) : "";
}

const MethodResult* best(const SettingResult& s) {
  const MethodResult* b = nullptr;
  for (const MethodResult& m : s.methods)
    if (std::isfinite(m.mse.mean) && (b == nullptr || m.mse.mean < b->mse.mean)) b = &m;
  return b;
}

std::string diverged_words(const SettingResult& s) {
  std::string text;
  for (const auto& [name, count] : s.diverged)
    if (count > 0)
      text += fmt::format("{}{} in {} of {}", text.empty() ? "" : ", ", name, count, s.replicates);
  return text.empty() ? "" : fmt::format("  diverged and left out: {} replicates\n", text);
}

// How much of the correction's mean the guard takes off, on average over the agents of the alarm.
double debiased(const MethodResult& m) {
  const auto c = std::find(m.columns.begin(), m.columns.end(), "guard_debias");
  if (c == m.columns.end()) return 0;
  double sum = 0;
  for (std::int64_t i : m.alarm.agents)
    sum += m.agents[static_cast<std::size_t>(i)]
               .columns[static_cast<std::size_t>(c - m.columns.begin())];
  return sum / static_cast<double>(m.alarm.agents.size());
}

// In words, where the importance correction of some agents has a mean that is not 0.
std::string alarm_words(const SettingResult& s) {
  std::string text;
  for (const MethodResult& m : s.methods) {
    if (m.alarm.agents.empty()) continue;
    fmt::format_to(std::back_inserter(text),
                   "  {}: the correction of {} of {} agents has a mean that is not 0 (z up to "
                   "{:.1f}): its density ratio\n  is wrong or not learnt yet; ",
                   m.name, m.alarm.agents.size(), m.agents.size(), m.alarm.largest);
    if (const double share = debiased(m); share > 0)
      fmt::format_to(std::back_inserter(text), "the guard takes {:.0f} % of that mean off\n",
                     100 * share);
    else
      text += "their solutions are biased\n";
  }
  return text;
}

// A problem whose truth is not known has no errors.
bool unscored(const SettingResult& s) {
  return s.used > 0 && std::none_of(s.methods.begin(), s.methods.end(), [](const MethodResult& m) {
           return std::isfinite(m.mse.mean);
         });
}

// Instead of errors: the first unknowns, each as its mean over agents.
void unscored_table(const SettingResult& s, std::string& out) {
  constexpr std::size_t kShown = 6, kWidest = 16;
  const std::size_t d = s.unknown_names.size(), n = s.agent_names.size();
  std::size_t name = 6;
  for (const MethodResult& m : s.methods) name = std::max(name, m.name.size());
  const auto title_of = [&](std::size_t r) { return s.unknown_names[r].substr(0, kWidest); };
  const auto width = [&](std::size_t r) { return std::max<std::size_t>(9, title_of(r).size()); };
  fmt::format_to(std::back_inserter(out), "{}{}({} replicate{}, {} steps, {} agents)\n",
                 setting_title(s), s.at.empty() ? "" : "  ", s.replicates,
                 s.replicates == 1 ? "" : "s", s.steps, n);
  fmt::format_to(std::back_inserter(out), "    {:<{}}", "method", name);
  for (std::size_t r = 0; r < std::min(d, kShown); ++r)
    fmt::format_to(std::back_inserter(out), "  {:>{}}", title_of(r), width(r));
  out += d > kShown ? fmt::format("  and {} more\n", d - kShown) : "\n";
  for (const MethodResult& m : s.methods) {
    fmt::format_to(std::back_inserter(out), "    {:<{}}", m.name, name);
    for (std::size_t r = 0; r < std::min(d, kShown) && !m.solution.empty(); ++r) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += m.solution[i * d + r];
      fmt::format_to(std::back_inserter(out), "  {:>{}}", number(sum / static_cast<double>(n)),
                     width(r));
    }
    out += '\n';
  }
  out += diverged_words(s) + alarm_words(s);
}

void long_table(const StudyResult& result, std::string& out) {
  std::size_t name = 6;
  bool alone = false;
  for (const SettingResult& s : result.settings)
    for (const MethodResult& m : s.methods)
      name = std::max(name, m.name.size()), alone |= std::isfinite(m.vs_independent.mean);
  for (const SettingResult& s : result.settings) {
    fmt::format_to(std::back_inserter(out), "{}{}({} replicate{}, {} steps)\n", setting_title(s),
                   s.at.empty() ? "" : "  ", s.replicates, s.replicates == 1 ? "" : "s", s.steps);
    fmt::format_to(std::back_inserter(out), "    {:<{}}  {:>10}  {:<24}{}\n", "method", name,
                   "error", "90 % interval", alone ? "  against alone" : "");
    const MethodResult* b = best(s);
    for (const MethodResult& m : s.methods) {
      fmt::format_to(std::back_inserter(out), "  {} {:<{}}  {:>10}  {:<24}", &m == b ? '*' : ' ',
                     m.name, name, number(m.mse.mean), interval(m.mse));
      if (std::isfinite(m.vs_independent.mean))
        fmt::format_to(std::back_inserter(out), "  {:>7.3f} {}", m.vs_independent.mean,
                       interval(m.vs_independent));
      while (!out.empty() && out.back() == ' ') out.pop_back();
      out += '\n';
    }
    out += diverged_words(s);
    out += alarm_words(s);
    if (std::isfinite(b ? b->mse.mean : NAN) && b->mse.mean > 10 * b->mse.median)
      fmt::format_to(std::back_inserter(out),
                     "  a few replicates dominate the means here; by median the best has {}\n",
                     number(b->mse.median));
  }
}

// One line per setting: the error of every method against learning alone, or the error itself.
void short_table(const StudyResult& result, std::string& out) {
  const SettingResult& first = result.settings.front();
  bool alone = false;
  std::size_t width = 0;
  for (const SettingResult& s : result.settings) {
    width = std::max(width, setting_title(s).size());
    for (const MethodResult& m : s.methods) alone |= std::isfinite(m.vs_independent.mean);
  }
  out += alone ? "error against learning alone\n" : "error\n";
  fmt::format_to(std::back_inserter(out), "  {:<{}}", "", width);
  for (const MethodResult& m : first.methods)
    fmt::format_to(std::back_inserter(out), "  {:>{}}", m.name,
                   std::max<std::size_t>(9, m.name.size()));
  out += '\n';
  for (const SettingResult& s : result.settings) {
    fmt::format_to(std::back_inserter(out), "  {:<{}}", setting_title(s), width);
    const MethodResult* b = best(s);
    for (const MethodResult& m : s.methods) {
      const std::string cell =
          number(alone ? m.vs_independent.mean : m.mse.mean) + (&m == b ? "*" : " ");
      fmt::format_to(std::back_inserter(out), "  {:>{}}", cell,
                     std::max<std::size_t>(9, m.name.size()));
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    out += '\n' + diverged_words(s);
  }
}

}  // namespace

std::string results_table(const StudyResult& result) {
  std::string out;
  if (result.settings.empty()) return "nothing was finished\n";
  if (std::all_of(result.settings.begin(), result.settings.end(), unscored)) {
    for (const SettingResult& s : result.settings) unscored_table(s, out);
    out +=
        "means over agents; the truth is not known here, so there are no errors: solutions.csv "
        "(--out) holds each agent's values\n";
    return out + (result.complete ? "" : "interrupted, so this is only what was finished\n");
  }
  if (result.settings.size() <= 12) {
    long_table(result, out);
  } else {
    short_table(result, out);
  }
  out += "* smallest error";
  if (!result.complete) out += "; interrupted, so this is only what was finished";
  return out + "\n";
}

ProgressLine::ProgressLine(bool quiet)
    : active_(!quiet && isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      shown_(start_) {}

ProgressLine::~ProgressLine() {
  if (active_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::operator()(double share) {
  const auto now = std::chrono::steady_clock::now();
  if (!active_ || now - shown_ < std::chrono::milliseconds(200)) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double left = share > 0 ? seconds * (1 - share) / share : 0;
  const std::string time = left < 90     ? fmt::format("{:.0f} s", left)
                           : left < 5400 ? fmt::format("{:.0f} min", left / 60)
                                         : fmt::format("{:.1f} h", left / 3600);
  fmt::print(stderr, "\r{:3.0f} %   {} left\033[K", 100 * share, time);
  std::fflush(stderr);
}

const std::atomic<bool>& interruption() {
  static const bool kInstalled = [] {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    return true;
  }();
  (void)kInstalled;
  return g_stop;
}

}  // namespace affpcl::cli
