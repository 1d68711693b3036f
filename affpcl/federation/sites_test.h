// Sites of a federation as threads of a test, with the centre between them.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "affpcl/federation/centre.h"
#include "affpcl/federation/site.h"

namespace affpcl {

// Texts that one thread puts and another one takes.
class TestQueue {
 public:
  struct Closed {};
  void put(std::string text) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(std::move(text));
    ready_.notify_all();
  }
  std::string take() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return !texts_.empty() || closed_; });
    if (texts_.empty()) throw Closed();
    std::string text = std::move(texts_.front());
    texts_.pop_front();
    return text;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    ready_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::string> texts_;
  bool closed_ = false;
};

// A site in a thread: work(processes) returns what all sites have in common.
class TestSite final : public Channel {
 public:
  using Work = std::function<std::string(SiteProcesses&)>;
  TestSite(SiteOptions options, Work work)
      : thread_(
            [this, options = std::move(options), work = std::move(work)] { run(options, work); }) {}
  ~TestSite() override {
    kill();
    thread_.join();
  }
  void put(std::string message) { messages_.put(std::move(message)); }
  std::string answer() { return answers_.take(); }
  void kill() { messages_.close(), answers_.close(); }  // it answers no more
  const std::string& error() const { return error_; }

 private:
  std::string receive() override { return messages_.take(); }
  void send(std::string_view message) override { answers_.put(std::string(message)); }
  void run(const SiteOptions& options, const Work& work) {
    serve(options, work);
    answers_.close();
  }
  void serve(const SiteOptions& options, const Work& work) {
    try {
      SiteProcesses processes(options, *this);
      for (;;) {
        try {
          const std::string centre = work(processes);
          return processes.finish(centre);
        } catch (const SiteRestart&) {
          processes.restart();
        } catch (const std::exception& e) {
          error_ = e.what();
          return processes.refuse();
        }
      }
    } catch (const TestQueue::Closed&) {
    } catch (const std::exception& e) {
      error_ = e.what();
    }
  }

  TestQueue messages_, answers_;
  std::string error_;
  std::thread thread_;
};

// Sends the centre's messages to the sites until it is done or waits; seen(site, answer) is called
// for every answer.
inline void run_federation(
    FederationCentre& centre, std::vector<std::pair<std::string, TestSite*>> sites,
    const std::function<void(const std::string&, const std::string&)>& seen = {}) {
  while (centre.state() == CentreState::kRunning) {
    const std::string message = centre.message();
    const std::vector<std::string> expected = centre.expected();
    for (const auto& [name, site] : sites)
      for (const std::string& e : expected)
        if (e == name) site->put(message);
    for (const auto& [name, site] : sites)
      for (const std::string& e : expected)
        if (e == name && centre.state() == CentreState::kRunning) {
          try {
            const std::string answer = site->answer();
            if (seen) seen(name, answer);
            centre.take(name, answer);
          } catch (const TestQueue::Closed&) {
            centre.lost(name);
          }
        }
  }
  if (centre.state() == CentreState::kFailed)  // all learn that it is over
    for (const auto& [name, site] : sites) site->put(centre.message());
}

}  // namespace affpcl
