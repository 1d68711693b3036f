// JOB.toml of `affpcl federate`: what the sites of a federation do together, and, where one machine runs
// them all, where each has its rows.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/json.h"
#include "affpcl/base/params.h"

namespace affpcl::cli {

enum class Engine { kLocal, kSim, kPoc, kProduction };

// A site's own settings. In production they are in a file of the site's own.
struct SiteSettings {
  std::string name;
  std::vector<std::string> data;
  std::vector<std::string> words;  // its own options as the command line has them: --agent=ward
  Json options = Json::object();
  bool may_leave = false;
};

struct JobFile {
  std::string name;          // of the job; the file's name if left out
  std::string task = "fit";  // or run
  std::string spec;          // run: the study, without the sections of the job
  Engine engine = Engine::kLocal;
  std::vector<SiteSettings> sites;
  std::size_t min_sites = 0;  // 0: all
  bool secure = true;
  double timeout = 600;            // seconds for an answer of a site
  std::string startup_kit;         // production: the folder of the administrator's startup kit
  std::string user;                // production: the administrator's name
  std::vector<std::string> words;  // [fit] as the command line has it
  Json options = Json::object();   // [fit]

  std::string key() const;          // a hash of what all sites agree to
  std::string key_of_data() const;  // and of the sites' files, where all are on this machine
  Json json() const;                // for affpcl.flare
};

// Of a text and what is in the files; those that cannot be read are left out.
std::string hash_of_files(const std::string& text, const std::vector<std::string>& files);

// BadInput names the file, the line and the key. Files of the sites are relative to the job's folder.
JobFile read_job(const std::string& path);

}  // namespace affpcl::cli

template <>
struct affpcl::EnumNames<affpcl::cli::Engine> {
  static constexpr std::array<std::string_view, 4> all = {"local", "sim", "poc", "production"};
};
