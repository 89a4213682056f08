#include "serve/repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ranges>
#include <utility>

#include "base/json.h"
#include "base/thread.h"

namespace weir::serve {
namespace {

constexpr size_t kMostJobs = 1024;
constexpr Duration kProbeEvery = 1s;  // at the most: while there is nothing else to do

// "3"; absent for what is no version's name, such as "03".
std::optional<int64_t> VersionOf(std::string_view text) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && version > 0 && !text.starts_with('0') ? std::optional(version) : std::nullopt;
}

std::string Name(std::string_view model) { return fmt::format("model \"{}\"", EscapeBytes(model)); }
std::string Name(std::string_view model, int64_t version) {
  return fmt::format("{} version {}", Name(model), version);
}

std::unexpected<Error> NotFound(std::string message) {
  return Fail(ErrorCode::kNotFound, std::move(message));
}
std::unexpected<Error> Later(std::string message) { return Fail(ErrorCode::kOverloaded, std::move(message)); }

std::shared_ptr<ServedModel> Under(const std::shared_ptr<LoadedModel>& loaded, Payload payload) {
  ServedModel* const served = loaded->Find(payload);
  return served == nullptr ? nullptr : std::shared_ptr<ServedModel>(loaded, served);
}

}  // namespace

Result<std::unique_ptr<Repository>> Repository::Create(Catalogue catalogue, Options options,
                                                       std::unique_ptr<Loader> loader, const Clock& clock,
                                                       Log log) {
  const std::map<std::string, std::string> there = TRY(catalogue.List());
  std::set<std::string> first;
  for (const std::string& name : options.load) {
    if (name == "*" || there.contains(name)) continue;
    std::vector<std::string_view> known;
    for (const auto& [other, path] : there) known.push_back(other);
    return NotFound(
        fmt::format("{} is not in the model repository; it has: {}", Name(name), fmt::join(known, ", ")));
  }
  const bool all =
      options.control == Control::kNone || std::ranges::find(options.load, "*") != options.load.end();
  for (const auto& [name, path] : there) {
    if (all || std::ranges::find(options.load, name) != options.load.end()) first.insert(name);
  }
  std::unique_ptr<Repository> repository(
      new Repository(std::move(catalogue), std::move(options), std::move(loader), clock, std::move(log)));
  {
    MutexLock lock(repository->mutex_);
    for (const auto& [name, path] : there) {
      const bool asked_for = first.contains(name);
      repository->models_[name] = {.path = path, .asked_for = asked_for, .loading = asked_for};
      if (asked_for) repository->jobs_.push_back({.model = name, .is_first = true});
    }
    repository->first_loads_ = first.size();
  }
  repository->thread_ =
      StartThread("repository", [self = repository.get()](const std::stop_token& stop) { self->Work(stop); });
  return repository;
}

Repository::Repository(Catalogue catalogue, Options options, std::unique_ptr<Loader> loader,
                       const Clock& clock, Log log)
    : catalogue_(std::move(catalogue)),
      options_(std::move(options)),
      loader_(std::move(loader)),
      clock_(clock),
      log_(std::move(log)) {}

Repository::~Repository() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  thread_.request_stop();
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

std::pair<std::string_view, Payload> Repository::Resolve(std::string_view name) const {
  if (models_.contains(name)) return {name, Payload::kTensor};
  for (const Payload payload : {Payload::kPixels, Payload::kImage}) {
    const std::string_view suffix = SuffixOf(payload);
    if (!name.ends_with(suffix)) continue;
    const std::string_view own = name.substr(0, name.size() - suffix.size());
    if (models_.contains(own)) return {own, payload};
  }
  return {name, Payload::kTensor};
}

Result<std::shared_ptr<LoadedModel>> Repository::FindLoaded(std::string_view model,
                                                            std::string_view version) const {
  const auto found = models_.find(model);
  if (found == models_.end()) return NotFound(Name(model) + " is not in the model repository");
  const Entry& entry = found->second;
  const auto wanted = VersionOf(version);
  if (!version.empty() && !wanted)
    return NotFound(fmt::format("{} has no version \"{}\"", Name(model), EscapeBytes(version)));
  if (!wanted) {
    for (const auto& [number, candidate] : std::views::reverse(entry.versions)) {
      if (candidate.loaded) return candidate.loaded;
    }
  } else if (const auto at = entry.versions.find(*wanted); at != entry.versions.end()) {
    if (at->second.loaded) return at->second.loaded;
    if (at->second.loading) return Later(Name(model, *wanted) + " is loading");
    if (!entry.unloading && !entry.loading && !at->second.reason.empty())
      return NotFound(fmt::format("{} is not loaded: {}", Name(model, *wanted), at->second.reason));
  }
  if (entry.unloading) return Later(Name(model) + " is being unloaded");
  if (entry.loading) return Later(Name(model) + " is loading");
  std::string ready, reason = entry.reason;
  for (const auto& [number, candidate] : entry.versions) {
    if (candidate.loaded) ready += fmt::format("{}{}", ready.empty() ? "" : ", ", number);
    if (reason.empty()) reason = candidate.reason;
  }
  if (wanted && !ready.empty())
    return NotFound(fmt::format("{} is not there; ready: {}", Name(model, *wanted), ready));
  return NotFound(fmt::format("{} is not loaded{}{}", Name(model), reason.empty() ? "" : ": ", reason));
}

Result<std::shared_ptr<ServedModel>> Repository::Find(std::string_view model,
                                                      std::string_view version) const {
  std::shared_ptr<LoadedModel> loaded;
  Payload payload = Payload::kTensor;
  {
    MutexLock lock(mutex_);
    const auto [own, asked] = Resolve(model);
    payload = asked;
    loaded = TRY(FindLoaded(own, version));
  }
  if (auto served = Under(loaded, payload)) return served;
  return NotFound(fmt::format("{} is not there: {} has no recipe that gives all pictures one size",
                              Name(model), Name(loaded->model().name)));
}

std::vector<std::shared_ptr<ServedModel>> Repository::Ready() const {
  std::vector<std::shared_ptr<ServedModel>> ready;
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : models_) {
    for (const Payload payload : kPayloads) {
      for (const auto& [number, version] : entry.versions) {
        if (!version.loaded) continue;
        if (auto served = Under(version.loaded, payload)) ready.push_back(std::move(served));
      }
    }
  }
  return ready;
}

bool Repository::Knows(std::string_view model) const {
  MutexLock lock(mutex_);
  return models_.contains(Resolve(model).first);
}

std::vector<std::string> Repository::VersionsOf(std::string_view model) const {
  std::vector<std::string> versions;
  MutexLock lock(mutex_);
  const auto found = models_.find(Resolve(model).first);
  if (found == models_.end()) return versions;
  for (const auto& [number, version] : found->second.versions) {
    if (version.loaded) versions.push_back(fmt::format("{}", number));
  }
  return versions;
}

Status Repository::AllReady() const {
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : models_) {
    if (!entry.asked_for) continue;
    if (!entry.reason.empty() && entry.versions.empty())
      return Later(fmt::format("{} is not loaded: {}", Name(name), entry.reason));
    if (entry.versions.empty()) return Later(Name(name) + " is loading");
    bool any = false;
    for (const auto& [number, version] : entry.versions) {
      any |= version.loaded != nullptr;
      if (version.loaded && version.loaded->dead())
        return Later(Name(name, number) + ": its engine fails every call");
      if (version.loaded || entry.was_ready) continue;
      return Later(version.loading ? Name(name, number) + " is loading"
                                   : fmt::format("{} is not loaded: {}", Name(name, number), version.reason));
    }
    if (!any) return Later(fmt::format("{} is not loaded: {}", Name(name), entry.reason));
  }
  return {};
}

bool Repository::WaitUntilLoaded(Instant until) const {
  MutexLock lock(mutex_);
  while (first_loads_ > 0 && !stopping_) {
    if (!changed_.WaitUntil(mutex_, until)) return first_loads_ == 0;
  }
  return first_loads_ == 0;
}

std::vector<wire::IndexEntry> Repository::Index(bool ready_only) const {
  std::vector<wire::IndexEntry> index;
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : models_) {
    if (entry.versions.empty() && !ready_only) {
      index.push_back({.name = name,
                       .state = entry.loading          ? "LOADING"
                                : entry.reason.empty() ? ""
                                                       : "UNAVAILABLE",
                       .reason = entry.reason});
    }
    for (const auto& [number, version] : entry.versions) {
      const bool loading = version.loading || (entry.loading && version.reason.empty());
      const char* const state = version.loaded    ? "READY"
                                : entry.unloading ? "UNLOADING"
                                : loading         ? "LOADING"
                                                  : "UNAVAILABLE";
      if (ready_only && !version.loaded) continue;
      for (const Payload payload : kPayloads) {
        const bool there =
            version.loaded ? version.loaded->Find(payload) != nullptr : payload == Payload::kTensor;
        if (!there) continue;
        index.push_back({.name = name + std::string(SuffixOf(payload)),
                         .version = fmt::format("{}", number),
                         .state = state,
                         .reason = version.reason.empty() ? entry.reason : version.reason});
      }
    }
  }
  return index;
}

void Repository::Load(const std::string& model, const std::string& config, Done done) {
  Enqueue({.kind = Job::Kind::kLoad, .model = model, .config = config, .done = std::move(done)});
}
void Repository::Unload(const std::string& model, Done done) {
  Enqueue({.kind = Job::Kind::kUnload, .model = model, .config = {}, .done = std::move(done)});
}

void Repository::Enqueue(Job job) {
  const auto refuse = [&]() -> Status {
    if (options_.control != Control::kExplicit) {
      return Fail(ErrorCode::kUnsupported,
                  "models are not loaded or unloaded by request here: start the server with "
                  "--model-control-mode explicit");
    }
    MutexLock lock(mutex_);
    if (stopping_) return Later("the server is stopping");
    if (jobs_.size() >= kMostJobs) return Later(fmt::format("{} loads are waiting: try later", kMostJobs));
    jobs_.push_back(std::move(job));
    return {};
  };
  if (const Status refused = refuse(); !refused) return job.done(refused);
  changed_.NotifyAll();
}

std::optional<Repository::Job> Repository::Next(const std::stop_token& stop) {
  const Instant until = clock_.Now() + kProbeEvery;
  MutexLock lock(mutex_);
  while (jobs_.empty() && retired_.empty() && !stop.stop_requested()) {
    if (!changed_.WaitUntil(mutex_, until)) break;
  }
  if (jobs_.empty() || stop.stop_requested()) return std::nullopt;
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

void Repository::Work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (auto job = Next(stop)) Do(*std::move(job));
    LetGoOfRetired(stop);
    ProbeSuspects();
  }
  std::deque<Job> dropped;
  std::map<std::string, Entry, std::less<>> models;
  {
    MutexLock lock(mutex_);
    dropped.swap(jobs_);
    models.swap(models_);
    first_loads_ = 0;
  }
  changed_.NotifyAll();
  for (Job& job : dropped) {
    if (job.done) job.done(Fail(ErrorCode::kCancelled, "the server is stopping"));
  }
  models.clear();
  // Calls that are still under way hold the last of the models.
  while (true) {
    LetGoOfRetired(stop);
    MutexLock lock(mutex_);
    if (alive_.empty()) return;
    while (retired_.empty()) changed_.Wait(mutex_);
  }
}

void Repository::LetGoOfRetired(const std::stop_token& stop) {
  decltype(retired_) retired;
  {
    MutexLock lock(mutex_);
    retired.swap(retired_);
  }
  for (auto& [number, loaded] : retired) {
    const std::string name = Name(loaded->model().name) + " version " + loaded->version();
    loaded.reset();  // answers what is queued, joins the engine's threads
    if (!stop.stop_requested()) log_(LogLevel::kInfo, name + ": let go");
    for (Done& done : Forget(number)) done({});
  }
}

// Gives those who waited for it.
std::vector<Repository::Done> Repository::Forget(uint64_t gone) {
  std::vector<Done> done;
  MutexLock lock(mutex_);
  alive_.erase(gone);
  for (Leaving& leaving : leaving_) {
    if (leaving.objects.erase(gone) == 0 || !leaving.objects.empty()) continue;
    done.push_back(std::move(leaving.done));
    if (const auto entry = models_.find(leaving.model); entry != models_.end())
      entry->second.unloading = false;
  }
  std::erase_if(leaving_, [](const Leaving& leaving) { return leaving.objects.empty(); });
  return done;
}

void Repository::ProbeSuspects() {
  std::vector<std::shared_ptr<LoadedModel>> suspects;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, entry] : models_) {
      for (const auto& [number, version] : entry.versions) {
        if (version.loaded && version.loaded->suspect()) suspects.push_back(version.loaded);
      }
    }
  }
  for (const auto& loaded : suspects) {
    const bool was_dead = loaded->dead();
    loaded->Probe();
    if (loaded->dead() == was_dead) continue;
    const std::string name = Name(loaded->model().name) + " version " + loaded->version();
    log_(was_dead ? LogLevel::kInfo : LogLevel::kError,
         name + (was_dead ? ": the engine answers again" : ": the engine fails at every call"));
  }
}

void Repository::Do(Job job) {
  if (job.kind == Job::Kind::kUnload) return UnloadNow(std::move(job));
  const Status loaded = LoadNow(job);
  {
    MutexLock lock(mutex_);
    if (const auto entry = models_.find(job.model); entry != models_.end()) {
      entry->second.loading = false;
      entry->second.reason = loaded ? "" : loaded.error().message;
      entry->second.was_ready |= loaded.has_value();
      for (auto& [number, version] : entry->second.versions) version.loading = false;
    }
    if (job.is_first) --first_loads_;
  }
  changed_.NotifyAll();
  if (!loaded) log_(LogLevel::kError, fmt::format("{}: {}", Name(job.model), loaded.error().message));
  if (job.done) job.done(loaded);
}

// Where the model lies now; it becomes known.
Result<Loader::Wanted> Repository::Locate(const Job& job) {
  const auto there = TRY(catalogue_.List());
  const auto found = there.find(job.model);
  if (!IsPlainName(job.model) || found == there.end()) {
    const size_t dot = job.model.rfind('.');
    const bool is_payload = dot != std::string::npos && there.contains(job.model.substr(0, dot));
    return NotFound(fmt::format(
        "{} is not in the model repository{}", Name(job.model),
        is_payload ? fmt::format(": it comes and goes with {}", Name(job.model.substr(0, dot))) : ""));
  }
  MutexLock lock(mutex_);
  Entry& entry = models_[job.model];
  entry.path = found->second;
  entry.loading = true;
  entry.unloading = false;  // what still leaves does so behind it
  return Loader::Wanted{.name = job.model, .path = found->second, .config = job.config};
}

Status Repository::LoadNow(const Job& job) {
  Loader::Wanted wanted = TRY(Locate(job));
  std::vector<int64_t> versions;
  for (const std::string& name : TRY(loader_->Versions(wanted))) {
    const auto version = VersionOf(name);
    CHECK(version.has_value());
    versions.push_back(*version);
  }
  {
    MutexLock lock(mutex_);
    for (const int64_t version : versions) models_[job.model].versions[version].loading = true;
  }
  Status all;
  for (const int64_t version : versions) {
    wanted.version = fmt::format("{}", version);
    const Instant begin = clock_.Now();
    auto loaded = loader_->Load(wanted);
    if (loaded) {
      log_(LogLevel::kInfo, fmt::format("{}: ready after {:.2f} s on {}", Name(job.model, version),
                                        Seconds(clock_.Now() - begin), (*loaded)->engine()));
    } else if (all) {
      all = std::unexpected(loaded.error());
    }
    Put(job.model, version, std::move(loaded));
  }
  // What the configuration no longer wants goes once its successor is there.
  if (all) DropOthers(job.model, versions);
  return all;
}

void Repository::Put(const std::string& model, int64_t number, Result<std::unique_ptr<LoadedModel>> loaded) {
  std::shared_ptr<LoadedModel> old;  // dropped outside of the lock
  std::shared_ptr<LoadedModel> fresh = loaded ? Share(*std::move(loaded)) : nullptr;
  MutexLock lock(mutex_);
  Version& version = models_[model].versions[number];
  version.loading = false;
  version.reason = loaded ? "" : loaded.error().message;
  if (!fresh) return;
  old = std::exchange(version.loaded, std::move(fresh));
}

void Repository::DropOthers(const std::string& model, const std::vector<int64_t>& versions) {
  std::vector<std::shared_ptr<LoadedModel>> old;  // dropped outside of the lock
  MutexLock lock(mutex_);
  auto& known = models_[model].versions;
  for (auto at = known.begin(); at != known.end();) {
    if (std::ranges::find(versions, at->first) != versions.end()) {
      ++at;
    } else {
      old.push_back(std::move(at->second.loaded));
      at = known.erase(at);
    }
  }
}

void Repository::UnloadNow(Job job) {
  std::vector<std::shared_ptr<LoadedModel>> old;  // dropped outside of the lock
  Leaving leaving{.model = job.model};
  const auto begin = [&]() -> Status {
    MutexLock lock(mutex_);
    const auto found = models_.find(job.model);
    if (found == models_.end()) return NotFound(Name(job.model) + " is not in the model repository");
    Entry& entry = found->second;
    entry.asked_for = false;
    entry.reason = "unloaded";
    for (auto& [number, version] : entry.versions) {
      version.reason = "unloaded";
      old.push_back(std::move(version.loaded));
    }
    for (const auto& [number, model] : alive_) {
      if (model == job.model) leaving.objects.insert(number);
    }
    entry.unloading = !leaving.objects.empty();
    if (!entry.unloading) return {};
    leaving.done = std::move(job.done);
    leaving_.push_back(std::move(leaving));
    return {};
  };
  const Status begun = begin();
  if (job.done) job.done(begun);
}

std::shared_ptr<LoadedModel> Repository::Share(std::unique_ptr<LoadedModel> loaded) {
  uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    number = ++made_;
    alive_[number] = loaded->model().name;
  }
  // Whoever knows a model last may not be one who can wait for its end.
  return {loaded.release(), [this, number](LoadedModel* last) {
            MutexLock lock(mutex_);
            retired_.emplace_back(number, last);
            changed_.NotifyAll();  // under the lock: behind it the repository may end
          }};
}

}  // namespace weir::serve
