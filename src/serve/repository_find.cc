// Looking models up. Loading and unloading are in repository.cc.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "serve/repository.h"
#include "serve/repository_names.h"

namespace weir::serve {
namespace {

std::shared_ptr<ServedModel> Under(const std::shared_ptr<LoadedModel>& loaded, Payload payload) {
  ServedModel* const served = loaded->Find(payload);
  return served == nullptr ? nullptr : std::shared_ptr<ServedModel>(loaded, served);
}

}  // namespace

std::pair<std::string_view, Payload> Repository::Resolve(std::string_view name) const {
  const auto called = models_.find(name);
  if (called != models_.end() && IsLoaded(called->second)) return {name, Payload::kTensor};
  for (const Payload payload : kOtherPayloads) {
    const std::string_view suffix = SuffixOf(payload);
    if (!name.ends_with(suffix)) continue;
    const std::string_view own = name.substr(0, name.size() - suffix.size());
    const auto owner = models_.find(own);
    // A model that could not be loaded hides no other's name.
    if (owner != models_.end() && (called == models_.end() || IsLoaded(owner->second, payload)))
      return {own, payload};
  }
  return {name, Payload::kTensor};
}

bool Repository::IsLoaded(const Entry& entry, Payload payload) {
  return std::ranges::any_of(entry.versions, [&](const auto& known) {
    return known.second.loaded && known.second.loaded->Find(payload) != nullptr;
  });
}

Result<std::shared_ptr<LoadedModel>> Repository::FindLoaded(std::string_view model,
                                                            std::string_view version) const {
  const auto found = models_.find(model);
  if (found == models_.end()) return NotFound(Name(model) + " is not in the model repository");
  const Entry& entry = found->second;
  const auto wanted = VersionOf(version);
  if (!version.empty() && !wanted)
    return NotFound(fmt::format("{} has no version \"{}\"", Name(model), Escaped(version)));
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
  const bool looks_up = payload == Payload::kIdentify || payload == Payload::kLookup;
  return NotFound(fmt::format("{} is not there: {} has {}", Name(model), Name(loaded->model().name),
                              looks_up ? "no parameter \"identities\" that names an index"
                                       : "no recipe that gives all pictures one size"));
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
      if (version.loaded) {
        const Status well = version.loaded->CheckEngine(clock_.Now());
        if (!well) return Context(Name(name, number), well.error());
      }
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

std::vector<oip::IndexEntry> Repository::Index(bool ready_only) const {
  std::vector<oip::IndexEntry> index;
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

}  // namespace weir::serve
