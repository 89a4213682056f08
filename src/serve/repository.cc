#include "serve/repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <system_error>
#include <utility>

#include "base/thread.h"
#include "serve/repository_names.h"

namespace weir::serve {
namespace {

constexpr size_t kMostJobs = 1024;

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
      options.control != Control::kExplicit || std::ranges::find(options.load, "*") != options.load.end();
  for (const auto& [name, path] : there) {
    if (all || std::ranges::find(options.load, name) != options.load.end()) first.insert(name);
  }
  std::unique_ptr<Repository> repository(
      new Repository(std::move(catalogue), std::move(options), std::move(loader), clock, std::move(log)));
  // The files are looked at before they are loaded, so that no change goes unseen.
  if (repository->options_.control == Control::kPoll)
    repository->scan_ = TRY(RepositoryScan::Create(repository->catalogue_));
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
  Stop(Instant{});
  if (thread_.joinable()) thread_.join();
}

bool Repository::Stop(Instant until) {
  MutexLock lock(mutex_);
  stopping_ = true;
  thread_.request_stop();
  changed_.NotifyAll();
  while (!stopped_) {
    if (!changed_.WaitUntil(mutex_, until)) return stopped_;
  }
  return true;
}

void Repository::Load(const std::string& model, const std::string& config, Done done) {
  Enqueue({.kind = Job::Kind::kLoad, .model = model, .config = config, .done = std::move(done)});
}
void Repository::Unload(const std::string& model, Done done) {
  Enqueue({.kind = Job::Kind::kUnload, .model = model, .config = {}, .done = std::move(done)});
}

Status Repository::CheckControl() const {
  if (options_.control == Control::kExplicit) return {};
  return Fail(ErrorCode::kUnsupported,
              "models are not loaded or unloaded by request here: start the server with "
              "--model-control-mode explicit");
}

void Repository::Enqueue(Job job) {
  const auto refuse = [&]() -> Status {
    TRY_STATUS(CheckControl());
    MutexLock lock(mutex_);
    if (stopping_) return Later("the server is stopping");
    if (jobs_.size() >= kMostJobs) return Later(fmt::format("{} loads are waiting: try later", kMostJobs));
    jobs_.push_back(std::move(job));
    return {};
  };
  if (const Status refused = refuse(); !refused) return job.done(refused);
  changed_.NotifyAll();
}

void Repository::Poll() {
  if (!scan_) return;
  const auto changes = scan_->Look();
  const std::string fault = changes ? "" : changes.error().message;
  if (fault != std::exchange(scan_fault_, fault) && !fault.empty())
    log_(LogLevel::kError, "the model repository was not polled: " + fault);
  if (!changes) return;
  {
    MutexLock lock(mutex_);
    for (const std::string& name : changes->changed) jobs_.push_back({.model = name});
    for (const std::string& name : changes->gone)
      jobs_.push_back({.kind = Job::Kind::kUnload, .model = name});
  }
  changed_.NotifyAll();
}

std::optional<Repository::Job> Repository::Next(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (jobs_.empty() && retired_.empty() && let_go_.empty() && !stop.stop_requested())
    changed_.Wait(mutex_);
  if (jobs_.empty() || stop.stop_requested()) return std::nullopt;
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

void Repository::Work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (auto job = Next(stop)) Do(*std::move(job));
    LetGoOfRetired(stop);
    JoinRetirers();
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
    if (alive_.empty()) break;
    if (retired_.empty()) changed_.Wait(mutex_);
  }
  retirers_.clear();
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();  // under the lock: behind it the repository may end
}

void Repository::LetGoOfRetired(const std::stop_token& stop) {
  decltype(retired_) retired;
  {
    MutexLock lock(mutex_);
    retired.swap(retired_);
  }
  const bool tells = !stop.stop_requested();
  for (auto& [number, loaded] : retired) {
    const auto held = std::make_shared<std::unique_ptr<LoadedModel>>(std::move(loaded));
    const auto let_go = [this, number, held, tells] { LetGo(number, std::move(*held), tells); };
    try {
      retirers_[number] = StartThread("retire", [let_go](const std::stop_token&) { let_go(); });
    } catch (const std::system_error&) {  // too many threads
      let_go();
    }
  }
}

void Repository::LetGo(uint64_t number, std::unique_ptr<LoadedModel> loaded, bool tells) {
  const std::string name = Name(loaded->model().name) + " version " + loaded->version();
  loaded.reset();  // answers what is queued, joins the engine's threads
  if (tells) log_(LogLevel::kInfo, name + ": let go");
  for (Done& done : Forget(number)) done({});
}

// Joins the threads that have let go of their model, which end now.
void Repository::JoinRetirers() {
  std::vector<uint64_t> let_go;
  {
    MutexLock lock(mutex_);
    let_go.swap(let_go_);
  }
  for (const uint64_t number : let_go) retirers_.erase(number);
}

// Gives those who waited for it.
std::vector<Repository::Done> Repository::Forget(uint64_t gone) {
  std::vector<Done> done;
  MutexLock lock(mutex_);
  alive_.erase(gone);
  let_go_.push_back(gone);
  changed_.NotifyAll();
  for (Leaving& leaving : leaving_) {
    if (leaving.objects.erase(gone) == 0 || !leaving.objects.empty()) continue;
    if (leaving.done) done.push_back(std::move(leaving.done));
    if (const auto entry = models_.find(leaving.model); entry != models_.end())
      entry->second.unloading = false;
  }
  std::erase_if(leaving_, [](const Leaving& leaving) { return leaving.objects.empty(); });
  return done;
}

void Repository::WatchEngines() {
  const Instant now = clock_.Now();
  std::vector<std::shared_ptr<LoadedModel>> suspects;
  std::vector<std::pair<LogLevel, std::string>> lines;
  {
    MutexLock lock(mutex_);
    for (auto& [name, entry] : models_) {
      for (auto& [number, version] : entry.versions) {
        if (!version.loaded) continue;
        const LoadedModel& loaded = *version.loaded;
        const bool hangs = loaded.hang(now).has_value(), dead = loaded.dead();
        const Status well = loaded.CheckEngine(now);
        const bool worse = (hangs && !version.told_hung) || (dead && !version.told_dead);
        const bool better = well && (version.told_hung || version.told_dead);
        const std::string what = Name(name, number) + ": ";
        if (worse && !well) lines.emplace_back(LogLevel::kError, what + well.error().message);
        if (better) lines.emplace_back(LogLevel::kInfo, what + "its engine answers again");
        version.told_hung = hangs;
        version.told_dead = dead;
        if (loaded.suspect() && !hangs) suspects.push_back(version.loaded);
      }
    }
  }
  for (const auto& [level, line] : lines) log_(level, line);
  // The result is for the next look.
  for (const auto& loaded : suspects) loaded->BeginProbe([] {});
}

std::optional<std::string> Repository::Lost() const {
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : models_) {
    for (const auto& [number, version] : entry.versions) {
      if (const auto why = version.loaded ? version.loaded->session().lost() : std::nullopt)
        return Name(name, number) + ": " + *why;
    }
  }
  return std::nullopt;
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
    ForgetGone(job.model);
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

// The versions that are there to be loaded.
Result<std::vector<int64_t>> Repository::VersionsThere(const Loader::Wanted& wanted) {
  std::vector<int64_t> versions;
  for (const std::string& name : TRY(loader_->Versions(wanted))) {
    const auto version = VersionOf(name);
    CHECK(version.has_value());
    versions.push_back(*version);
  }
  return versions;
}

Status Repository::LoadNow(const Job& job) {
  Loader::Wanted wanted = TRY(Locate(job));
  TRY_STATUS(CheckPlace(wanted.path));
  TRY_STATUS(CheckName(job.model));
  const std::vector<int64_t> versions = TRY(VersionsThere(wanted));
  ForgetVersions(job.model, versions);
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
  // Versions that the configuration no longer wants are removed once their successor is there.
  if (all) DropOthers(job.model, versions);
  return all;
}

// A name under which another model takes pictures is that model's: a folder of that name would hide it.
Status Repository::CheckName(const std::string& model) {
  const auto there = TRY(catalogue_.List());
  for (const Payload payload : {Payload::kPixels, Payload::kImage}) {
    const std::string_view suffix = SuffixOf(payload);
    if (model.ends_with(suffix)) {
      const auto owner = there.find(model.substr(0, model.size() - suffix.size()));
      if (owner == there.end() || !HasRecipe(owner->second)) continue;
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} ({}) has the name under which {} ({}) takes pictures: rename one of them",
                              Name(model), there.at(model), Name(owner->first), owner->second));
    }
    const auto hiding = there.find(model + std::string(suffix));
    if (hiding == there.end() || !HasRecipe(there.at(model))) continue;
    log_(LogLevel::kWarning,
         fmt::format("{} ({}) is not served: {} takes pictures under that name: rename one of them",
                     Name(hiding->first), hiding->second, Name(model)));
  }
  return {};
}

// Forgets the model, which is not in the repository, but for what is loaded of it. One that was asked for
// stays, with the reason.
void Repository::ForgetGone(const std::string& model) {
  ForgetVersions(model, {});
  MutexLock lock(mutex_);
  const auto entry = models_.find(model);
  if (entry != models_.end() && entry->second.versions.empty() && !entry->second.asked_for)
    models_.erase(entry);
}

// Forgets the versions that are not loaded and not among those that are `there`.
void Repository::ForgetVersions(const std::string& model, const std::vector<int64_t>& there) {
  MutexLock lock(mutex_);
  const auto entry = models_.find(model);
  if (entry == models_.end()) return;
  std::erase_if(entry->second.versions, [&](const auto& known) {
    return !known.second.loaded && std::ranges::find(there, known.first) == there.end();
  });
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
  version.told_dead = version.told_hung = false;
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

// Forgets what is not loaded and whose files have been deleted.
void Repository::ForgetDeleted(const std::string& model) {
  const auto there = catalogue_.List();
  if (!there) return;
  const auto found = there->find(model);
  if (found == there->end()) return ForgetGone(model);
  if (const auto versions = VersionsThere({.name = model, .path = found->second}); versions)
    ForgetVersions(model, *versions);
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
  ForgetDeleted(job.model);
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
