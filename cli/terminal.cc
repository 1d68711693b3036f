#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "affpcl/output/study_headline.h"
#include "cli/processes.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

std::atomic<bool> g_stop{false}, g_writes{false}, g_shows_progress{false}, g_first{true};

extern "C" void on_signal(int signal) {
  if (g_stop.exchange(true)) _exit(128 + signal);
  if (signal == SIGUSR1) return;  // a scheduler's early word: there is time
  const itimerval patience = {.it_interval = {}, .it_value = {.tv_sec = 1, .tv_usec = 500'000}};
  setitimer(ITIMER_REAL, &patience, nullptr);
}

extern "C" void on_deadline(int) {
  if (g_writes) return;
  if (!g_first) _exit(kInterrupted);  // rank 0 says it
  constexpr std::string_view kClear = "\r\033[K", kSaid = "affpcl: interrupted\n";
  if (g_shows_progress) (void)!write(STDERR_FILENO, kClear.data(), kClear.size());
  (void)!write(STDERR_FILENO, kSaid.data(), kSaid.size());
  _exit(kInterrupted);
}

std::string number(double x) { return std::isfinite(x) ? fmt::format("{:.4g}", x) : "-"; }

std::string bold(const std::string& text, const Style& style) {
  return style.colour ? "\033[1m" + text + "\033[0m" : text;
}

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

// The weight of the collaborative iterate, on average over the agents of the alarm; below 0: there
// is no guard.
double guarded_share(const MethodResult& m) {
  const auto c = std::find(m.columns.begin(), m.columns.end(), "guard_share");
  if (c == m.columns.end()) return -1;
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
    text += fmt::format(
        "  {}: the correction of {} of {} agents has a mean that is not 0 (z up to {:.1f}): its "
        "density ratio\n  is wrong or not learnt yet; ",
        m.name, m.alarm.agents.size(), m.agents.size(), m.alarm.largest);
    if (const double share = guarded_share(m); share >= 0)
      text +=
          fmt::format("the guard gives their collaborative iterates a weight of {:.2f}\n", share);
    else
      text += "their solutions are biased\n";
  }
  return text;
}

// Methods that the drift alarm could not test. It needs 100 rounds in the second halves of all
// replicates together.
std::string too_short_words(const SettingResult& s) {
  std::string names;
  for (const MethodResult& m : s.methods)
    if (m.alarm.too_short && std::isfinite(m.mse.mean))
      names += (names.empty() ? "" : ", ") + m.name;
  return names.empty() ? "" : fmt::format("  too short for the drift alarm: {}\n", names);
}

// Guarded methods whose collaborative iterates have no weight at any agent, and those whose centre
// diverged in a replicate that the table counts.
std::string alone_words(const SettingResult& s) {
  std::string text;
  for (const MethodResult& m : s.methods) {
    const auto c = std::find(m.columns.begin(), m.columns.end(), "guard_share") - m.columns.begin();
    const auto column = static_cast<std::size_t>(c);
    if (column == m.columns.size() || !std::isfinite(m.mse.mean)) continue;
    const bool alone = std::all_of(m.agents.begin(), m.agents.end(),
                                   [&](const AgentResult& a) { return a.columns[column] == 0; });
    const bool x = std::isinf(m.central_x), theta = std::isinf(m.central_theta);
    if (x || theta)
      text += fmt::format(
          "  {}: the centre's {} diverged; the guard dropped it and all agents learnt alone{}\n",
          m.name,
          x && theta ? "x^c and theta^c"
          : x        ? "x^c"
                     : "theta^c",
          alone ? "" : " where it did");
    else if (alone)
      text += fmt::format(
          "  {}: the guard gave the collaborative iterates no weight; all agents learnt alone\n",
          m.name);
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
  out +=
      fmt::format("{}{}({} replicate{}, {} steps, {} agents)\n", setting_title(s),
                  s.at.empty() ? "" : "  ", s.replicates, s.replicates == 1 ? "" : "s", s.steps, n);
  out += fmt::format("    {:<{}}", "method", name);
  for (std::size_t r = 0; r < std::min(d, kShown); ++r)
    out += fmt::format("  {:>{}}", title_of(r), width(r));
  out += d > kShown ? fmt::format("  and {} more\n", d - kShown) : "\n";
  for (const MethodResult& m : s.methods) {
    out += fmt::format("    {:<{}}", m.name, name);
    for (std::size_t r = 0; r < std::min(d, kShown) && !m.solution.empty(); ++r) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += m.solution[i * d + r];
      out += fmt::format("  {:>{}}", number(sum / static_cast<double>(n)), width(r));
    }
    out += '\n';
  }
  out += diverged_words(s) + alone_words(s) + alarm_words(s);
}

// What a table's rows show; a narrow terminal has no room for the intervals, a wide one for bars.
struct Room {
  std::size_t name = 6;
  bool alone = false;  // the ratio to learning alone is known
  bool intervals = true, ratio_intervals = true;
  std::size_t bar = 0;
};

Room room_of(const StudyResult& result, const Style& style) {
  constexpr std::size_t kError = 4 + 2 + 10, kInterval = 2 + 24, kRatio = 2 + 7,
                        kRatioInterval = 25;
  constexpr std::size_t kLeastBar = 6, kMostBar = 20, kLongestName = 28;
  Room room;
  for (const SettingResult& s : result.settings)
    for (const MethodResult& m : s.methods) {
      room.name = std::max(room.name, places(m.name));
      room.alone |= std::isfinite(m.vs_independent.mean);
    }
  if (style.width == 0) return room;
  room.name = std::min(room.name, kLongestName);
  const auto used = [&] {
    return kError + room.name + (room.intervals ? kInterval : 0) +
           (room.alone ? kRatio + (room.ratio_intervals ? kRatioInterval : 0) : 0);
  };
  if (used() > style.width) room.intervals = false;
  if (used() > style.width) room.ratio_intervals = false;
  if (room.alone && used() + 2 + kLeastBar < style.width)
    room.bar = std::min(kMostBar, style.width - used() - 3);
  return room;
}

// Spaces after a text whose bytes are more than its places.
std::string padded(std::string text, std::size_t width) {
  text.append(width - std::min(width, places(text)), ' ');
  return text;
}

std::string method_row(const MethodResult& m, bool best, const Room& room, const Style& style) {
  std::string row = fmt::format(
      "  {} {}  {:>10}", best ? '*' : ' ',
      padded(style.width > 0 ? clipped(m.name, room.name) : m.name, room.name), number(m.mse.mean));
  if (room.intervals) row += fmt::format("  {:<24}", interval(m.mse));
  if (std::isfinite(m.vs_independent.mean)) {
    row += fmt::format("  {:>7.3f}", m.vs_independent.mean);
    if (room.ratio_intervals)
      row += fmt::format(" {:<{}}", interval(m.vs_independent), room.bar > 0 ? 24 : 0);
    if (room.bar > 0) row += "  " + ratio_bar(m.vs_independent.mean, room.bar);
  }
  while (!row.empty() && row.back() == ' ') row.pop_back();
  return best ? bold(row, style) : row;
}

void long_table(const StudyResult& result, const Style& style, std::string& out) {
  const Room room = room_of(result, style);
  for (const SettingResult& s : result.settings) {
    out +=
        fmt::format("{}{}({} replicate{}, {} steps)\n", setting_title(s), s.at.empty() ? "" : "  ",
                    s.replicates, s.replicates == 1 ? "" : "s", s.steps);
    out += fmt::format("    {:<{}}  {:>10}", "method", room.name, "error");
    std::string more = room.intervals ? fmt::format("  {:<24}", "90 % interval") : "";
    if (room.alone) more += room.ratio_intervals ? "  vs independent" : "  / indep.";
    while (!more.empty() && more.back() == ' ') more.pop_back();
    out += more + "\n";
    const MethodResult* b = best(s);
    for (const MethodResult& m : s.methods) out += method_row(m, &m == b, room, style) + "\n";
    out += diverged_words(s) + alone_words(s) + alarm_words(s) + too_short_words(s);
    if (std::isfinite(b ? b->mse.mean : NAN) && b->mse.mean > 10 * b->mse.median)
      out += fmt::format("  a few replicates dominate the means here; by median the best has {}\n",
                         number(b->mse.median));
  }
}

// One line per setting: the error of every method against learning alone, or the error itself; as
// many methods as there is room for.
void short_table(const StudyResult& result, const Style& style, std::string& out) {
  const SettingResult& first = result.settings.front();
  bool alone = false;
  std::size_t width = 0;
  for (const SettingResult& s : result.settings) {
    width = std::max(width, places(setting_title(s)));
    for (const MethodResult& m : s.methods) alone |= std::isfinite(m.vs_independent.mean);
  }
  const auto cell_width = [](const MethodResult& m) {
    return std::max<std::size_t>(9, places(m.name));
  };
  std::size_t used = 2 + width, shown = 0;
  while (shown < first.methods.size() &&
         (style.width == 0 || shown == 0 ||
          used + 2 + cell_width(first.methods[shown]) <= style.width))
    used += 2 + cell_width(first.methods[shown++]);
  out += alone ? "error over that of independent learning\n" : "error\n";
  out += std::string(2 + width, ' ');
  for (std::size_t m = 0; m < shown; ++m)
    out += fmt::format("  {:>{}}", first.methods[m].name, cell_width(first.methods[m]));
  out += '\n';
  for (const SettingResult& s : result.settings) {
    std::string row = "  " + padded(setting_title(s), width);
    const MethodResult* b = best(s);
    for (std::size_t k = 0; k < std::min(shown, s.methods.size()); ++k) {
      const MethodResult& m = s.methods[k];
      const std::string cell =
          number(alone ? m.vs_independent.mean : m.mse.mean) + (&m == b ? "*" : " ");
      row += fmt::format("  {:>{}}", cell, cell_width(first.methods[k]));
    }
    while (!row.empty() && row.back() == ' ') row.pop_back();
    out += row + '\n' + diverged_words(s);
  }
  if (shown < first.methods.size())
    out += fmt::format("  … {} more methods, where the terminal is wider\n",
                       first.methods.size() - shown);
}

}  // namespace

std::size_t places(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string clipped(std::string_view text, std::size_t most) {
  if (places(text) <= most) return std::string(text);
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end)
    if ((text[end] & 0xC0) != 0x80 && seen++ == most - 1) break;
  return std::string(text.substr(0, end)) + "…";
}

std::string ratio_bar(double ratio, std::size_t most) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(
      std::lround(8 * static_cast<double>(most) * std::clamp(ratio, 0.0, 1.0)));
  std::string bar;
  for (std::size_t i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  return padded(bar, most) + (ratio > 1 ? "▶" : "│");
}

std::string wrapped(const std::string& sentence, const Style& style) {
  std::string lines, line;
  for (std::size_t at = 0; at < sentence.size();) {
    const std::size_t end = std::min(sentence.find(' ', at), sentence.size());
    const std::string word = sentence.substr(at, end - at);
    if (style.width > 0 && !line.empty() && places(line) + 1 + places(word) > style.width) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return lines + line;
}

std::string headline_text(const std::string& sentence, const Style& style) {
  return bold(wrapped(sentence, style), style) + "\n";
}

Style output_style() {
  if (isatty(STDOUT_FILENO) != 1) return {};
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const char* term = std::getenv("TERM");
  return {.width = known ? size.ws_col : std::size_t{80},
          .colour = std::getenv("NO_COLOR") == nullptr && term != nullptr &&
                    std::string_view(term) != "dumb"};
}

std::string results_table(const StudyResult& result, const Style& style) {
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
    long_table(result, style, out);
  } else {
    short_table(result, style, out);
  }
  return out + "* smallest error\n" + headline_text(headline(result), style);
}

ProgressLine::ProgressLine(bool quiet)
    : active_(!quiet && isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      shown_(start_) {
  g_shows_progress = active_;
}

ProgressLine::~ProgressLine() {
  g_shows_progress = false;
  if (active_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::operator()(double share) {
  const auto now = std::chrono::steady_clock::now();
  if (!active_ || now - shown_ < std::chrono::milliseconds(200)) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double left = share > 0 ? seconds * (1 - share) / share : 0;
  const std::string time = share <= 0    ? ""
                           : left < 90   ? fmt::format("   {:.0f} s left", left)
                           : left < 5400 ? fmt::format("   {:.0f} min left", left / 60)
                                         : fmt::format("   {:.1f} h left", left / 3600);
  fmt::print(stderr, "\r{:3.0f} %{}\033[K", 100 * share, time);
  std::fflush(stderr);
}

const std::atomic<bool>& interruption() {
  static const bool kInstalled = [] {
    g_first = launched().rank == 0;
    std::signal(SIGALRM, on_deadline);
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    std::signal(SIGUSR1, on_signal);  // which mpirun passes on, and schedulers can send
    return true;
  }();
  (void)kInstalled;
  return g_stop;
}

void take_time_to_write() { g_writes = true; }

}  // namespace affpcl::cli
