// The models that are served, from their first loading to the last answer they owe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "oip/api.h"
#include "serve/catalogue.h"
#include "serve/loaded_model.h"
#include "serve/loader.h"
#include "serve/log.h"
#include "serve/repository_scan.h"

namespace weir::serve {

// A version is loaded, warmed up and ready before the one it replaces is let go; calls in flight finish on
// the one they began on. A load that fails leaves what was there, and the index says why. All of that happens
// on one thread, "repository"; looking a model up never waits for it. What is let go ends on a short-lived
// thread of its own, "retire", so that an engine that hangs holds nobody else up. Thread-safe.
class Repository {
 public:
  enum class Control { kNone, kPoll, kExplicit };
  struct Options {
    Control control = Control::kNone;
    std::vector<std::string> load;  // kExplicit: names to begin with; "*": all
  };
  // Begins to load at once what is to be served from the start: with kNone and kPoll everything in the
  // catalogue.
  // kNotFound for a name to load that is not there. `clock` must outlive the repository.
  static Result<std::unique_ptr<Repository>> Create(Catalogue catalogue, Options options,
                                                    std::unique_ptr<Loader> loader, const Clock& clock,
                                                    Log log);
  // As Stop, without an end to waiting.
  ~Repository();

  // Answers the jobs that wait (kCancelled), finishes the one under way, and lets all models go: each answers
  // what it has queued. No model may be held by then but by calls that these answers end. Returns false where
  // that was not done by `until`: an engine hangs, or a load.
  bool Stop(Instant until);

  // `version` empty: the highest that is ready. kNotFound for what there is none of, or whose loading failed;
  // kOverloaded for what is being loaded or unloaded. What it gives may be dropped on any thread.
  Result<std::shared_ptr<ServedModel>> Find(std::string_view model, std::string_view version) const;
  // All that are ready, in the order of names and versions.
  std::vector<std::shared_ptr<ServedModel>> Ready() const;
  // Whether there is a model that clients may call `model`, loaded or not.
  bool Knows(std::string_view model) const;
  // The ready versions under `model`, rising.
  std::vector<std::string> VersionsOf(std::string_view model) const;

  // Returns the reason why the server is not ready: a model asked for that has no version ready, is still
  // loading for the first time, or whose last load failed or whose engine is dead or hangs.
  Status AllReady() const;
  // Until what is to be served from the start is loaded, or has failed; false when `until` came first.
  bool WaitUntilLoaded(Instant until) const;

  std::vector<oip::IndexEntry> Index(bool ready_only) const;

  // Looks after the engines: logs which hang, fail at every call, or answer again, and begins to probe those
  // that are suspect. Waits for none of them. To be called about every second.
  void WatchEngines();
  // Says why, once a device that some model computes on is lost to this process.
  std::optional<std::string> Lost() const;

  // Begins to load the models whose files have changed, and to unload those whose files are gone; see
  // RepositoryScan. Does nothing unless the control is kPoll. To be called by one thread, every some seconds.
  void Poll();

  // kUnsupported unless models are controlled explicitly.
  Status CheckControl() const;
  // `done` is called when it is ready, or with the reason why not, on a thread of the repository; at once
  // with the error of CheckControl.
  using Done = oip::Api::Done;
  void Load(const std::string& model, const std::string& config, Done done);
  // `done` is called when the last call has been answered.
  void Unload(const std::string& model, Done done);

 private:
  // The state of a version: it may be served and have a reason (a later load that failed) at once.
  struct Version {
    std::shared_ptr<LoadedModel> loaded;
    bool loading = false;
    std::string reason;  // why it is not loaded, or not anew
    // The states of `loaded` that were logged.
    bool told_dead = false, told_hung = false;
  };
  struct Entry {
    std::string path;
    bool asked_for = false;  // from the start: without it the server is not ready
    bool was_ready = false;  // all of it: a version that fails later takes nothing away
    bool loading = false;
    bool unloading = false;
    std::string reason;  // of the model whole: why it has no version, or why the last load failed
    std::map<int64_t, Version> versions;
  };
  struct Job {
    enum class Kind { kLoad, kUnload };
    Kind kind = Kind::kLoad;
    std::string model;
    std::string config;
    Done done;
    bool is_first = false;  // one of those that the server begins with
  };
  // Who waits for a model to be gone.
  struct Leaving {
    std::string model;
    std::set<uint64_t> objects;  // that still are
    Done done;
  };

  Repository(Catalogue catalogue, Options options, std::unique_ptr<Loader> loader, const Clock& clock,
             Log log);

  void Enqueue(Job job);
  void Work(const std::stop_token& stop);
  std::optional<Job> Next(const std::stop_token& stop);
  void LetGoOfRetired(const std::stop_token& stop) EXCLUDES(mutex_);
  void LetGo(uint64_t number, std::unique_ptr<LoadedModel> loaded, bool tells);
  void JoinRetirers() EXCLUDES(mutex_);
  std::vector<Done> Forget(uint64_t gone);
  void Do(Job job);
  Status LoadNow(const Job& job);
  Result<Loader::Wanted> Locate(const Job& job);
  Result<std::vector<int64_t>> VersionsThere(const Loader::Wanted& wanted);
  Status CheckName(const std::string& model);
  void ForgetGone(const std::string& model);
  void ForgetVersions(const std::string& model, const std::vector<int64_t>& there);
  void ForgetDeleted(const std::string& model);
  void UnloadNow(Job job);
  void Put(const std::string& model, int64_t version, Result<std::unique_ptr<LoadedModel>> loaded);
  void DropOthers(const std::string& model, const std::vector<int64_t>& versions);
  std::shared_ptr<LoadedModel> Share(std::unique_ptr<LoadedModel> loaded);

  static bool IsLoaded(const Entry& entry, Payload payload = Payload::kTensor);
  // The model's own name, and what follows it in `name`.
  std::pair<std::string_view, Payload> Resolve(std::string_view name) const REQUIRES(mutex_);
  Result<std::shared_ptr<LoadedModel>> FindLoaded(std::string_view model, std::string_view version) const
      REQUIRES(mutex_);

  const Catalogue catalogue_;
  const Options options_;
  const std::unique_ptr<Loader> loader_;
  const Clock& clock_;
  const Log log_;
  std::optional<RepositoryScan> scan_;  // of kPoll; for the thread that polls
  std::string scan_fault_;              // of the last look

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::map<std::string, Entry, std::less<>> models_ GUARDED_BY(mutex_);
  std::deque<Job> jobs_ GUARDED_BY(mutex_);
  size_t first_loads_ GUARDED_BY(mutex_) = 0;                 // still to be done
  uint64_t made_ GUARDED_BY(mutex_) = 0;                      // the number of the last object
  std::map<uint64_t, std::string> alive_ GUARDED_BY(mutex_);  // objects not yet destroyed: whose they are
  // Those of which nobody knows any more: to be destroyed.
  std::vector<std::pair<uint64_t, std::unique_ptr<LoadedModel>>> retired_ GUARDED_BY(mutex_);
  std::vector<Leaving> leaving_ GUARDED_BY(mutex_);
  std::vector<uint64_t> let_go_ GUARDED_BY(mutex_);  // whose thread is about to end
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool stopped_ GUARDED_BY(mutex_) = false;

  std::map<uint64_t, std::jthread> retirers_;  // of the repository's thread
  std::jthread thread_;
};

}  // namespace weir::serve
