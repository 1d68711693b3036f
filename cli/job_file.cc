#define XXH_INLINE_ALL

#include "cli/job_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/base/join.h"
#include "affpcl/study/spec.h"
#include "affpcl/study/toml_text.h"
#include "affpcl/table/privacy.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {
namespace fs = std::filesystem;

using Names = std::vector<std::string_view>;

const Names kTasks = {"fit", "run"};
const Names kSections = {"job", "fit", "privacy", "site"};
const Names kRunSections = {"job", "site", "title", "problem", "run", "method", "sweep"};
const Names kJobKeys = {"task",   "engine",      "name",    "sites", "min_sites",
                        "secure", "startup_kit", "timeout", "user",  "spec"};
// Keys that concern how a site reads its own rows; `data` and `may_leave` are its own alone.
const Names kSiteKeys = {"data",    "may_leave", "with", "agent", "exclude", "sep",
                         "decimal", "encoding",  "na",   "skip",  "comment", "threads"};
// Of a study; those but threads take the place of the study's problem.KEY.
const Names kRunSiteKeys = {"data", "may_leave", "with", "weights", "agent", "threads"};
// Options of `fit` that the federation sets, or that belong to one site.
const std::set<std::string_view> kNotInFit = {
    "data",    "with",   "site", "job",    "may_leave", "unmasked", "out",
    "force",   "report", "top",  "sort",   "all",       "json",     "quiet",
    "threads", "sum",    "test", "centre", "privacy",   "bounds"};  // these have a section of their own
constexpr double kLongest = 86'400;                                 // seconds

class Reader {
 public:
  explicit Reader(std::string path)
      : path_(std::move(path)), folder_(fs::path(path_).parent_path()), fit_(fit_verb("")) {
    for (const Option& o : fit_.options) {
      std::string key = o.name.substr(std::min(o.name.find_first_not_of('-'), o.name.size()));
      std::replace(key.begin(), key.end(), '-', '_');
      if (key == "no_score") key = "score";
      options_[key] = &o;
      if (!kNotInFit.contains(key)) fit_keys_.push_back(key);
    }
  }

  JobFile read() {
    const toml::table root = parse();
    const toml::table& job = section(root, "job");
    only("job", job, kJobKeys);
    JobFile out;
    out.name = fs::path(path_).stem().string();
    take(job, "name", out.name);
    check_name("job.name", out.name, job.get("name"));
    std::string engine = "local";
    take(job, "task", out.task);
    if (std::find(kTasks.begin(), kTasks.end(), out.task) == kTasks.end())
      fail(fmt::format("job.task = \"{}\" is not available in a federation; allowed: fit, run",
                       out.task),
           job.get("task"));
    only("", root, out.task == "run" ? kRunSections : kSections);
    take(job, "engine", engine);
    try {
      out.engine = value_of<Engine>(engine, "job.engine");
    } catch (const BadInput& e) {
      fail(e.marked(), job.get("engine"));
    }
    take(job, "secure", out.secure);
    take(job, "startup_kit", out.startup_kit);
    take(job, "user", out.user);
    out.timeout = number(job, "timeout", out.timeout, 1, kLongest);
    take_sites(root, job, out);
    out.min_sites = static_cast<std::size_t>(number(job, "min_sites", 0, out.secure ? 3 : 2,
                                                    static_cast<double>(out.sites.size()), true));
    take_kit(job, out);
    if (out.task == "run") {
      take_study(root, job, out);
      return out;
    }
    if (job.contains("spec")) fail("job.spec belongs to task = \"run\"", job.get("spec"));
    const toml::table& fit = section(root, "fit");
    only("fit", fit, {fit_keys_.begin(), fit_keys_.end()});
    for (const auto& [key, node] : fit)
      add("fit", std::string(key.str()), node, out.options, out.words);
    check_words("[fit]", out.words);
    take_privacy(root, out);
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const toml::node* node = nullptr) const {
    const auto line = node != nullptr ? node->source().begin.line : 0;
    throw BadInput(line > 0 ? fmt::format("{} line {}: {}", path_, line, what)
                            : fmt::format("{}: {}", path_, what));
  }

  toml::table parse() {
    std::ifstream in(path_, std::ios::binary);
    text_.assign(std::istreambuf_iterator<char>(in), {});
    const std::string& text = text_;
    if (!in || fs::is_directory(path_))
      throw BadInput(fmt::format("cannot read the job {}", path_));
    if (const TomlFault fault = toml_fault(text); fault.line > 0)
      throw BadInput(fmt::format("{} line {}: {}", path_, fault.line, fault.what));
    try {
      return toml::parse(text);
    } catch (const toml::parse_error& e) {
      throw BadInput(fmt::format("{} line {}: {}", path_, e.source().begin.line,
                                 std::string(e.description())));
    }
  }

  void only(const std::string& where, const toml::table& table, const Names& keys) const {
    for (const auto& [key, node] : table)
      if (std::find(keys.begin(), keys.end(), key.str()) == keys.end())
        fail(fmt::format("{}{}{} is not a known key{}", where, where.empty() ? "" : ".", key.str(),
                         hint(key.str(), keys)),
             &node);
  }

  const toml::table& section(const toml::table& root, std::string_view key) const {
    const toml::node* node = root.get(key);
    if (node == nullptr) fail(fmt::format("there is no [{}] section", key));
    if (!node->is_table()) fail(fmt::format("{} must be a section [{}]", key, key), node);
    return *node->as_table();
  }

  template <class T>
  void take(const toml::table& table, std::string_view key, T& to) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const auto value = node->value_exact<T>();
    if (!value)
      fail(fmt::format("{} must be {}", key,
                       std::is_same_v<T, bool> ? "true or false" : "a text in quotes"),
           node);
    to = *value;
  }

  double number(const toml::table& table, std::string_view key, double otherwise, double lo,
                double hi, bool whole = false) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return otherwise;
    const auto value = node->value<double>();
    if (!node->is_number() || !value || !(*value >= lo && *value <= hi) ||
        (whole && *value != std::floor(*value)))
      fail(fmt::format("job.{} must be a {}number from {:.0f} to {:.0f}", key,
                       whole ? "whole " : "", lo, hi),
           node);
    return *value;
  }

  std::vector<std::string> texts(const std::string& where, const toml::node& node) const {
    std::vector<std::string> list;
    if (const auto* one = node.as_string()) return {one->get()};
    if (const auto* all = node.as_array())
      for (const toml::node& item : *all) {
        if (!item.is_string()) fail(where + " must be a list of texts", &item);
        list.push_back(item.as_string()->get());
      }
    else
      fail(where + " must be a text, or a list of texts", &node);
    return list;
  }

  // A name is a folder's, and FLARE's.
  void check_name(const std::string& where, const std::string& name, const toml::node* node) const {
    const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
    if (name.empty() || name.size() > 60 || !std::all_of(name.begin(), name.end(), plain) ||
        std::isalnum(static_cast<unsigned char>(name[0])) == 0)
      fail(fmt::format(
               "{} '{}' must be of letters, digits, - and _, and begin with a letter or digit",
               where, name),
           node);
  }

  void take_sites(const toml::table& root, const toml::table& job, JobFile& out) const {
    const toml::node* node = job.get("sites");
    if (node == nullptr) fail("job.sites is missing: the names of the sites");
    for (const std::string& name : texts("job.sites", *node)) {
      check_name("job.sites:", name, node);
      if (name == "centre" || name == "server")
        fail(fmt::format("job.sites: '{}' is the name of the centre's own folder or program", name),
             node);
      for (const SiteSettings& s : out.sites)
        if (s.name == name) fail(fmt::format("job.sites names '{}' twice", name), node);
      out.sites.emplace_back().name = name;
    }
    const std::size_t fewest = out.secure ? 3 : 2;
    if (out.sites.size() < fewest)
      fail(
          fmt::format("job.sites has {} name{}; {} needs {} sites or more{}", out.sites.size(),
                      out.sites.size() == 1 ? "" : "s",
                      out.secure ? "secure = true" : "a federation", fewest,
                      out.secure ? ": of two, each can subtract its own numbers from the sum" : ""),
          node);
    const toml::node* sections = root.get("site");
    if (out.engine == Engine::kProduction) {
      if (sections != nullptr)
        fail(
            "[site.…] does not belong into the job of engine = \"production\": each site's "
            "settings "
            "are in a file of its own",
            sections);
      return;
    }
    if (sections != nullptr && !sections->is_table())
      fail("site must be sections [site.NAME]", sections);
    Names names;
    for (const SiteSettings& s : out.sites) names.push_back(s.name);
    if (sections != nullptr)
      for (const auto& [key, section] : *sections->as_table())
        if (std::find(names.begin(), names.end(), key.str()) == names.end())
          fail(fmt::format("[site.{}] is of no site in job.sites{}", key.str(),
                           hint(key.str(), names)),
               &section);
    for (SiteSettings& site : out.sites) {
      const toml::node* own = sections == nullptr ? nullptr : sections->as_table()->get(site.name);
      if (own == nullptr || !own->is_table())
        fail(fmt::format("there is no [site.{}] section with its data", site.name), own);
      take_site(*own->as_table(), site, out.task);
    }
  }

  void take_site(const toml::table& own, SiteSettings& site, const std::string& task) const {
    const std::string where = "site." + site.name;
    const bool run = task == "run";
    only(where, own, run ? kRunSiteKeys : kSiteKeys);
    if (own.get("data") == nullptr) fail(where + ".data is missing: the site's file", &own);
    for (const auto& [k, node] : own) {
      const std::string key(k.str());
      if (key == "data") {
        for (const std::string& file : texts(where + ".data", node)) {
          site.data.push_back(fs::absolute(folder_ / file).lexically_normal().string());
          if (!fs::exists(site.data.back()))
            fail(fmt::format("{}.data: there is no file {}", where, site.data.back()), &node);
        }
        if (site.data.empty()) fail(where + ".data is empty", &node);
        if (run && site.data.size() > 1) fail(where + ".data: a study has one file", &node);
      } else if (key == "may_leave") {
        take(own, key, site.may_leave);
      } else if (run && key != "threads") {
        std::string value;
        take(own, key, value);
        if (key != "agent") value = fs::absolute(folder_ / value).lexically_normal().string();
        site.words.push_back(fmt::format("--set=problem.{}={}", key, value));
        site.options[key] = value;
      } else if (key == "with") {
        Json files = Json::array();
        for (const std::string& file : texts(where + ".with", node)) {
          const std::string path = fs::absolute(folder_ / file).lexically_normal().string();
          site.words.push_back("--with=" + path);
          files.push_back(path);
        }
        site.options[key] = std::move(files);
      } else {
        add(where, key, node, site.options, site.words);
      }
    }
    if (!run) check_words(fmt::format("[site.{}]", site.name), site.words);
  }

  // [privacy] epsilon, delta and bounds, as the options of `fit` have them.
  void take_privacy(const toml::table& root, JobFile& out) const {
    if (root.get("privacy") == nullptr) return;
    const toml::table& privacy = section(root, "privacy");
    only("privacy", privacy, {"epsilon", "delta", "bounds"});
    std::string terms, bounds;
    for (const char* key : {"epsilon", "delta"}) {
      const toml::node* node = privacy.get(key);
      if (node == nullptr || !node->is_number())
        fail(fmt::format("privacy.{} must be a number", key), node);
      terms += fmt::format("{}{}={}", terms.empty() ? "" : ",", key, *node->value<double>());
    }
    const toml::node* listed = privacy.get("bounds");
    if (listed == nullptr || !listed->is_table())
      fail(
          "privacy.bounds must be a section [privacy.bounds] with every column: y = [0, 100], kind "
          "= [\"a\", \"b\"]",
          listed);
    for (const auto& [key, node] : *listed->as_table()) {
      const std::string column(key.str()), where = "privacy.bounds." + column;
      const auto* pair = node.as_array();
      const bool numbers =
          pair != nullptr && pair->size() == 2 && (*pair)[0].is_number() && (*pair)[1].is_number();
      bounds += (bounds.empty() ? "" : ",") +
                csv_field(column + "=" +
                          (numbers ? fmt::format("{}:{}", *(*pair)[0].value<double>(),
                                                 *(*pair)[1].value<double>())
                                   : join(texts(where, node), "|")));
    }
    out.options["privacy"] = terms, out.options["bounds"] = bounds;
    const std::vector<std::string> words = {"--privacy=" + terms, "--bounds=" + bounds};
    out.words.insert(out.words.end(), words.begin(), words.end());
    try {
      PrivacyTerms::parse(terms, bounds);
    } catch (const BadInput& e) {
      throw BadInput(fmt::format("{} [privacy]: {}", path_, e.marked()));
    }
  }

  void take_kit(const toml::table& job, JobFile& out) const {
    if (out.engine == Engine::kProduction) {
      if (out.startup_kit.empty())
        fail(
            "job.startup_kit is missing: the folder of the administrator's startup kit, which "
            "`nvflare provision` made");
      out.startup_kit = fs::absolute(folder_ / out.startup_kit).lexically_normal().string();
      if (!fs::is_directory(out.startup_kit))
        fail(fmt::format("job.startup_kit: there is no folder {}", out.startup_kit),
             job.get("startup_kit"));
    } else if (!out.startup_kit.empty() || !out.user.empty()) {
      fail("job.startup_kit and job.user belong to engine = \"production\"",
           job.get(out.user.empty() ? "startup_kit" : "user"));
    }
  }

  // An option of the task, in both of its forms.
  void add(const std::string& where, const std::string& key, const toml::node& node, Json& options,
           std::vector<std::string>& words) const {
    const std::string name = where + "." + key;
    const Option& option = *options_.at(key);
    if (std::holds_alternative<bool*>(option.to)) {
      const auto value = node.value_exact<bool>();
      if (!value) fail(name + " must be true or false", &node);
      options[key] = *value;
      if (key == "score" ? !*value : *value) words.push_back(option.name);
      return;
    }
    if (node.is_boolean() || node.is_table() || node.is_date() || node.is_date_time() ||
        node.is_time())
      fail(fmt::format("{} has a value of a kind that it does not take", name), &node);
    std::string text;
    if (const auto* whole = node.as_integer()) {
      options[key] = whole->get();
      text = std::to_string(whole->get());
    } else if (const auto* real = node.as_floating_point()) {
      options[key] = real->get();
      text = to_text(real->get());
    } else if (const auto* one = node.as_string()) {
      options[key] = one->get();
      text = one->get();
    } else {
      const std::vector<std::string> list = texts(name, node);
      options[key] = Json(list);
      for (const std::string& item : list) text += (text.empty() ? "" : ",") + csv_field(item);
    }
    words.push_back(option.name + "=" + text);
  }

  // The values, as the command line checks them.
  void check_words(const std::string& where, const std::vector<std::string>& words) const {
    std::vector<std::string> all = {"affpcl", "fit", "data.csv"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> argv;
    for (std::string& word : all) argv.push_back(word.data());
    Program program{.doc = "", .version = "", .footer = "", .verbs = {fit_verb("")}};
    try {
      read_command_line(static_cast<int>(argv.size()), argv.data(), program);
    } catch (const BadInput& e) {
      throw BadInput(fmt::format("{} {}: {}", path_, where, e.marked()));
    }
  }

  // The study that all sites run: a file of its own, or what the job has beside its own sections.
  void take_study(const toml::table& root, const toml::table& job, JobFile& out) const {
    std::string file;
    take(job, "spec", file);
    std::string name = path_;
    if (file.empty()) {
      out.spec = without_sections(root, {"job", "site"});
    } else {
      for (const auto& [key, node] : root)
        if (key.str() != "job" && key.str() != "site")
          fail(fmt::format("{} is in the study already: job.spec = \"{}\"", key.str(), file),
               &node);
      name = (folder_ / file).string();
      std::ifstream in(name, std::ios::binary);
      out.spec.assign(std::istreambuf_iterator<char>(in), {});
      if (!in || fs::is_directory(name))
        fail(fmt::format("job.spec: there is no file {}", name), job.get("spec"));
    }
    const Study study = read_study(out.spec, name);
    for (const Setting& s : study.settings) {
      if (s.spec.problem_kind != "rows")
        throw BadInput(
            fmt::format("{}: problem.kind = \"{}\" is not available in a federation; allowed: rows",
                        name, s.spec.problem_kind));
      for (const char* key : {"file", "with", "weights"})
        if (!s.spec.problem.text(key).empty())
          throw BadInput(fmt::format("{}: problem.{} belongs to the sites: [site.NAME] {}", name,
                                     key, std::string_view(key) == "file" ? "data" : key));
    }
  }

  // The text with empty lines in place of these sections, so that lines keep their numbers.
  std::string without_sections(const toml::table& root,
                               const std::set<std::string_view>& left_out) const {
    std::map<std::size_t, bool> begins;  // line of a section: whether it is kept
    const auto add = [&](const toml::node& node, bool kept) {
      begins[node.source().begin.line] = kept;
    };
    for (const auto& [key, node] : root) {
      const bool kept = !left_out.contains(key.str());
      if (const toml::table* section = node.as_table();
          section != nullptr && !section->is_inline()) {
        add(node, kept);
        for (const auto& [inner, part] : *section)
          if (part.is_table() && !part.as_table()->is_inline()) add(part, kept);
      } else if (node.is_array_of_tables()) {
        for (const toml::node& part : *node.as_array()) add(part, kept);
      }
    }
    std::string out, line;
    std::istringstream lines(text_);
    bool keep = true;
    for (std::size_t number = 1; std::getline(lines, line); ++number) {
      if (const auto at = begins.find(number); at != begins.end()) keep = at->second;
      out += (keep ? line : "") + "\n";
    }
    return out;
  }

  std::string path_, text_;
  fs::path folder_;
  Verb fit_;
  std::map<std::string, const Option*> options_;
  std::vector<std::string> fit_keys_;
};

}  // namespace

std::string JobFile::key() const {
  std::string text = fmt::format("{} {} {}", name, min_sites, secure);
  for (const SiteSettings& site : sites) text += " " + site.name;
  for (const std::string& word : words) text += fmt::format(" {} {}", word.size(), word);
  if (task != "fit") text += fmt::format(" {} {}", task, spec);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string JobFile::key_of_data() const {
  std::vector<std::string> files;
  for (const SiteSettings& site : sites)
    files.insert(files.end(), site.data.begin(), site.data.end());
  return hash_of_files(key(), files);
}

std::string hash_of_files(const std::string& text, const std::vector<std::string>& files) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), text.data(), text.size());
  std::vector<char> block(std::size_t{1} << 16);
  for (const std::string& path : files) {
    if (!std::filesystem::is_regular_file(path)) continue;  // a site says what is wrong with it
    std::ifstream in(path, std::ios::binary);
    while (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0)
      XXH3_128bits_update(state.get(), block.data(), static_cast<std::size_t>(in.gcount()));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Json JobFile::json() const {
  Json names = Json::array(), own = Json::object();
  for (const SiteSettings& site : sites) {
    names.push_back(site.name);
    Json settings = site.options;
    settings["data"] = Json(site.data);
    settings["may_leave"] = site.may_leave;
    if (engine != Engine::kProduction) own[site.name] = std::move(settings);
  }
  return Json{{"name", name},
              {"task", task},
              {"engine", name_of(engine)},
              {"sites", names},
              {"min_sites", min_sites},
              {"secure", secure},
              {"timeout", timeout},
              {"startup_kit", startup_kit},
              {"user", user},
              {"fit", options},
              {"spec", spec},
              {"site", std::move(own)}};
}

JobFile read_job(const std::string& path) { return Reader(path).read(); }

}  // namespace affpcl::cli
