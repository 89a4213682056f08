#include "load/cluster/load_agent.h"

#include <algorithm>
#include <utility>

#include "base/fields.h"
#include "load/cluster/cluster_load.h"
#include "load/cluster/host_run.h"
#include "load/session/ceiling.h"
#include "load/session/session_requests.h"

namespace weir::load {
namespace {

constexpr double kMostLevel = 1e8;         // requests a second, or in flight
constexpr Duration kLongest = 24h + 1min;  // the flags' limits
constexpr int64_t kMostRequests = int64_t{1} << 41;

// A task in JSON.
struct Form {
  double value = 0;
  int64_t length_ns = 0, requests = 0, begin_ns = 0;
  uint64_t seed = 1;
};

template <typename F>
void Describe(F& fields, Described<F, Form>& form) {
  fields.FromZero("value", form.value);
  fields("length_ns", form.length_ns);
  fields("requests", form.requests);
  fields("begin_ns", form.begin_ns);
  fields("seed", form.seed);
  fields.Require(form.value <= kMostLevel, "a level that is too large");
  fields.Require(form.length_ns >= 0 && Duration(form.length_ns) <= kLongest, "a length that no run has");
  fields.Require(form.requests >= 0 && form.requests <= kMostRequests,
                 "a number of requests that no run has");
}

}  // namespace

Json HostTask::ToJson() const {
  return FieldsToJson(Form{.value = value,
                           .length_ns = length.count(),
                           .requests = requests,
                           .begin_ns = begin.time_since_epoch().count(),
                           .seed = seed});
}

Result<HostTask> HostTask::FromJson(const Json& json) {
  const Form form = TRY(FieldsFromJson<Form>(json));
  return HostTask{.value = form.value,
                  .length = Duration(form.length_ns),
                  .requests = form.requests,
                  .seed = form.seed,
                  .begin = Instant(Duration(form.begin_ns))};
}

Status LoadAgent::Open(LoadOptions options) {
  opened_ = false;
  target_.reset();
  TRY_STATUS(CheckHosts(options));
  options.server = {};  // rank 0 watches it
  options_ = std::make_unique<LoadOptions>(std::move(options));
  const std::vector<Level> levels = TRY(LevelsOf(*options_));
  level_ = levels.front();
  target_ = TRY(OpenTarget(*options_, clock_, MostInFlight(levels)));
  requests_ = TRY(RequestsFor(*options_, *target_, [](const std::string&) {}, clock_));
  constexpr size_t kProbe = 64;
  probe_.assign(requests_.pool.begin(),
                requests_.pool.begin() + std::ssize(requests_.pool) -
                    std::max<std::ptrdiff_t>(0, std::ssize(requests_.pool) - std::ptrdiff_t{kProbe}));
  TRY_STATUS(target_->Prepare(requests_));
  opened_ = true;
  return {};
}

Result<cluster::Message> LoadAgent::Play(const HostTask& task, cluster::CallContext& context) {
  if (!opened_) return Fail(ErrorCode::kInvalidArgument, "no load was opened before");
  TRY_STATUS(cluster::CheckBegin(task.begin, clock_.Now()));
  Level whole = level_;
  if (auto* closed = std::get_if<Concurrency>(&whole.scenario))
    closed->in_flight = static_cast<int>(std::clamp(task.value, 0.0, 65536.0));
  else
    std::get<Rate>(whole.scenario).per_second = task.value;
  const LevelShare share = TRY(ShareOf(whole.scenario, task.requests, context.rank(), context.world()));
  const std::stop_token stop = context.stop();
  SessionHooks hooks;
  hooks.begin = [&]() -> std::optional<Instant> {
    SleepUntil(task.begin);
    return task.begin;
  };
  if (target_->protocol() != "in-process" && options_->endpoint.empty())
    hooks.measure_ceiling = [&] { return MeasureCeiling(*options_, *target_, probe_, clock_, stop); };
  LoadSession session(*options_, *target_, requests_, clock_, std::move(hooks), stop);
  const Level level{.scenario = share.scenario, .name = whole.name};
  LevelResult result = TRY(session.PlayRepeats(
      level, {.length = task.length, .requests = share.requests, .repeats = 1, .note = ""}, 0,
      Seed(task.seed)));
  if (result.repeats.empty()) return Fail(ErrorCode::kCancelled, "stopped before the run began");
  return ToMessage({.played = std::move(result.repeats.front()),
                    .environment = result.environments.front(),
                    .server = result.server,
                    .server_share = result.server_share,
                    .calls = result.calls});
}

}  // namespace weir::load
