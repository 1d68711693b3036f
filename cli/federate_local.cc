#include "cli/federate_local.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/base/join.h"
#include "affpcl/federation/centre.h"
#include "affpcl/output/federation_file.h"
#include "cli/child.h"
#include "cli/processes.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {
namespace fs = std::filesystem;

constexpr int kMostStarts = 4;  // of a site whose process is killed
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;

// The study of a job in a file that the sites' processes read; removed at the end.
class SpecFile {
 public:
  explicit SpecFile(const JobFile& job)
      : folder_((fs::temp_directory_path() / "affpcl-study-XXXXXX").string()) {
    if (::mkdtemp(folder_.data()) == nullptr)
      throw Failure(fmt::format("{}: cannot be made", folder_));
    path_ = (fs::path(folder_) / (job.name + ".toml")).string();
    write_file(path_, job.spec);
  }
  ~SpecFile() {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  SpecFile(const SpecFile&) = delete;
  SpecFile& operator=(const SpecFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
};

class Local {
 public:
  Local(const JobFile& job, const FederateOptions& o)
      : job_(job),
        o_(o),
        key_(job.key_of_data()),
        program_(fs::read_symlink("/proc/self/exe").string()),
        spec_(job.task == "run" ? std::make_unique<SpecFile>(job) : nullptr),
        centre_({.job = key_,
                 .sites = names(),
                 .min_sites = job.min_sites,
                 .secure = job.secure,
                 .journal = o.journal}) {
    for (const SiteSettings& site : job.sites) start(site);
  }
  ~Local() {
    for (auto& [name, site] : sites_) site.process->ask_to_end();  // all, then wait for each
  }

  Federated run() {
    const auto begin = std::chrono::steady_clock::now();
    while (centre_.state() == CentreState::kRunning) {
      round();
      o_.progress(centre_.progress());
    }
    if (centre_.state() != CentreState::kDone) fail();
    for (const std::string& name : centre_.sites())
      if (sites_.at(name).process->wait() != 0)
        throw Failure(fmt::format("site '{}': {}", name, sites_.at(name).process->last_words()));
    const fs::path folder = fs::path(o_.out) / "centre";
    fs::create_directories(folder);
    write_file((folder / "centre.json").string(), centre_.model());
    write_file((folder / "ledger.json").string(), ledger_json(centre_));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return {.sites = centre_.sites(),
            .rounds = centre_.rounds(),
            .bytes_received = centre_.bytes_received(),
            .seconds = took.count()};
  }

 private:
  struct Site {
    std::unique_ptr<Child> process;
    const SiteSettings* settings = nullptr;
    int starts = 0;
  };

  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const SiteSettings& site : job_.sites) list.push_back(site.name);
    return list;
  }

  void start(const SiteSettings& settings) {
    const auto threads =
        std::max<std::size_t>(1, std::thread::hardware_concurrency() / job_.sites.size());
    std::vector<std::string> words = {program_, job_.task};
    const auto add = [&](const std::vector<std::string>& more) {
      words.insert(words.end(), more.begin(), more.end());
    };
    if (spec_)
      add({spec_->path(), "--set=problem.file=" + settings.data[0]});
    else
      add(settings.data);
    const auto option = [](const std::string& word) { return word.substr(0, word.find('=')); };
    for (const std::string& word : job_.words)  // what the site says itself replaces it
      if (std::none_of(settings.words.begin(), settings.words.end(),
                       [&](const std::string& own) { return option(own) == option(word); }))
        words.push_back(word);
    add(settings.words);
    if (!settings.options.contains("threads")) add({"--threads", std::to_string(threads)});
    add({"--site", settings.name, "--job", key_, "--out",
         (fs::path(o_.out) / settings.name).string(), "--force", "--quiet"});
    if (settings.may_leave) add({"--may-leave"});
    if (!job_.secure) add({"--unmasked"});
    if (o_.report) add({"--report"});
    Site& site = sites_[settings.name];
    site.settings = &settings;
    site.process = std::make_unique<Child>(words);
    ++site.starts;
  }

  // The centre's message to all sites, and their answers.
  void round() {
    const std::string message = centre_.message();
    const std::vector<std::string> expected = centre_.expected();
    std::vector<std::string> lost;
    for (const std::string& name : expected)
      if (!send(*sites_.at(name).process, message)) lost.push_back(name);
    for (const std::string& name : expected) {
      std::string answer;
      if (std::find(lost.begin(), lost.end(), name) != lost.end() ||
          !receive(*sites_.at(name).process, answer)) {
        gone(name);
      } else {
        if (SiteMessage::decoded(answer).kind == MessageKind::kRefused) refused_.push_back(name);
        centre_.take(name, answer);
      }
    }
  }

  static bool send(Child& to, const std::string& message) {
    const std::uint64_t size = message.size();
    return to.write({reinterpret_cast<const char*>(&size), sizeof size}) && to.write(message);
  }

  static bool receive(Child& from, std::string& message) {
    std::uint64_t size = 0;
    if (!from.read(reinterpret_cast<char*>(&size), sizeof size)) return false;
    if (size > kMostBytes) throw Failure("a site's message is longer than 4 GiB");
    message.resize(size);
    return from.read(message.data(), size);
  }

  // The site's process has ended without a message.
  void gone(const std::string& name) {
    Site& site = sites_.at(name);
    const int code = site.process->wait();
    if (code >= 0) {
      refused_.push_back(name);
      return centre_.fail(fmt::format("the site '{}' cannot go on", name));
    }
    const std::string killed =
        fmt::format("the process of site '{}' was killed (signal {})", name, -code);
    centre_.lost(name);
    if (centre_.may_drop()) {
      centre_.drop_lost();
      return o_.note(killed + "; the others start again without it");
    }
    if (site.starts == kMostStarts)
      return centre_.fail(fmt::format("{} {} times", killed, kMostStarts));
    o_.note(killed + "; started again");
    start(*site.settings);
    centre_.back(name);
  }

  // What most sites say of a disagreement is about the few that are different; these say it best.
  [[noreturn]] void fail() {
    if (refused_.empty()) throw Failure(centre_.status());
    std::map<std::string, std::vector<std::string>> by_sentence;
    bool input = true;
    for (const std::string& name : refused_) {
      const Site& site = sites_.at(name);
      if (site.process->wait() != kBadInput) input = false;
      std::string said = site.process->last_words();
      for (const std::string& file : site.settings->data)
        if (refused_.size() > 1 && said.starts_with(file))
          said.erase(0, said.find_first_not_of(":, ", file.size()));
      by_sentence[said].push_back(name);
    }
    const auto fewest =
        std::min_element(by_sentence.begin(), by_sentence.end(),
                         [](auto& a, auto& b) { return a.second.size() < b.second.size(); });
    const std::string text = fmt::format("site{} '{}': {}", fewest->second.size() > 1 ? "s" : "",
                                         join(fewest->second, "', '"), fewest->first);
    if (input) throw BadInput(text);
    throw Failure(text);
  }

  const JobFile& job_;
  const FederateOptions& o_;
  std::string key_, program_;
  std::unique_ptr<SpecFile> spec_;
  FederationCentre centre_;
  std::map<std::string, Site> sites_;
  std::vector<std::string> refused_;
};

}  // namespace

Federated federate_local(const JobFile& job, const FederateOptions& options) {
  return Local(job, options).run();
}

}  // namespace affpcl::cli
