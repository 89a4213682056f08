#include "trial/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <variant>

#include "results/bottleneck.h"
#include "results/thresholds.h"

namespace weir::trial {
namespace {

namespace threshold = results::threshold;

// The keys of the client's result that are metrics; the rest describes the trial.
constexpr std::array kRunKeys = {
    "throughput_images_per_s", "wall_s",           "images",   "rejected",  "stages_ms",
    "bound_images_per_s",      "cpu_ms_per_image", "accuracy", "server_ms", "server_mean_batch"};
constexpr std::array kLevelKeys = {"throughput_per_s", "rows_per_s",
                                   "response_ms",      "service_ms",
                                   "first_byte_ms",    "slip_ms",
                                   "split_ms",         "server_ms",
                                   "server_requests",  "answered",
                                   "failed",           "unsent",
                                   "planned",          "client_cpu_us_per_request",
                                   "spin_cpu_s"};

// Taken from the load generator's level beside the application.
constexpr std::array kResponseKeys = {"response_ms", "service_ms", "split_ms"};

template <typename Keys>
void Take(const Json& from, const Keys& keys, Json& metrics) {
  for (const char* key : keys) {
    if (from.contains(key)) metrics[key] = from[key];
  }
}

// Intervals are worked out over trials, not within them.
void DropIntervals(Json& metrics) {
  for (auto& [key, value] : metrics.items()) {
    if (value.is_object()) value.erase("intervals_95");
  }
}

double MeanOf(const Json& resources, const char* key) {
  const auto range = resources.find(key);
  return range != resources.end() && range->is_object() ? range->value("mean", 0.0) : 0.0;
}

// Cores of the client's machine that others than the system under test used; nothing where one cannot tell.
std::optional<double> ForeignCpu(const Json& resources, const Observation& seen) {
  if (!resources.contains("client_cpu") || !resources.contains("app_cpu")) return std::nullopt;
  // The recogniser is counted apart from the application, in its process and in a server's.
  const bool is_recogniser_here = !seen.there && seen.there_absent.empty();
  if (is_recogniser_here && !resources.contains("recogniser_cpu")) return std::nullopt;
  return MeanOf(resources, "client_cpu") - MeanOf(resources, "app_cpu") -
         (is_recogniser_here ? MeanOf(resources, "recogniser_cpu") : 0.0) -
         resources.value("observer_cpu", 0.0);
}

// Judges the state of the machine for clients that do not judge themselves. `resources`: the client's alone.
record::Verdict JudgeMachine(const Json& resources, const Json& metrics, const Observation& seen) {
  using record::Reason, record::Standing;
  record::Verdict verdict;
  const double cores = metrics.value("machine_cpus", 0.0);
  const double foreign = ForeignCpu(metrics["resources"], seen).value_or(0);
  if (cores > 0 && foreign > threshold::kForeignShareOfTrial * cores)
    verdict.Add(Standing::kSuspect,
                {Reason::kForeignCpu, fmt::format("others used {:.2g} of {:g} cores, limit {:g} %", foreign,
                                                  cores, 100 * threshold::kForeignShareOfTrial)});
  const double steal = resources.value("steal_percent", 0.0);
  if (steal > threshold::kStealPercent)
    verdict.Add(Standing::kSuspect,
                {Reason::kSteal, fmt::format("the hypervisor took {:.2g} % of the CPU time, limit {:g} %",
                                             steal, threshold::kStealPercent)});
  const double wall_s = resources.value("wall_s", 0.0);
  const double throttled = wall_s > 0 ? resources.value("throttled_s", 0.0) / wall_s : 0;
  if (throttled > threshold::kThrottledShare)
    verdict.Add(Standing::kInvalid,
                {Reason::kThrottling,
                 fmt::format("the control group's quota held the work back for {:.2g} % of the time",
                             100 * throttled)});
  return verdict;
}

// Reads the claim that is asked for: the latency at a rate, else the throughput.
Result<record::Verdict> ReadVerdict(const Json& level, bool of_latency) {
  const char* claim = of_latency ? "latency" : "throughput";
  Json verdict{{"verdict", TRY(GetString(level.value("verdict", Json::object()), claim))},
               {"reasons", Json::array()}};
  for (const Json& reason : level.value("reasons", Json::array())) {
    const auto about = reason.value("about", std::vector<std::string>{});
    if (std::ranges::find(about, claim) != about.end()) verdict["reasons"].push_back(reason);
  }
  return record::Verdict::FromJson(verdict);
}

// Everything that is the server's, over the client's account of its own side.
void AddServer(const Json& own, const Setting& setting, Json& metrics) {
  if (!own.is_object()) return;
  Json& resources = metrics["resources"];
  if (own.contains("app_cpu")) resources["recogniser_cpu"] = own["app_cpu"];    // of its processes
  if (own.contains("client_cpu")) resources["server_cpu"] = own["client_cpu"];  // of its machine
  for (const char* key : {"gpu_percent", "host_memory_bytes", "container_memory_bytes", "throttled_s"}) {
    if (own.contains(key)) resources[key] = own[key];
  }
  // A container without a control group of its own: what its processes have resident.
  if (setting.architecture == Architecture::kMicroservice && !own.contains("container_memory_bytes") &&
      own.contains("process_memory_bytes")) {
    resources["container_memory_bytes"] = own["process_memory_bytes"];
    metrics["container_memory_is"] = "resident in its processes: it has no control group of its own";
  }
  resources["observer_cpu"] = resources.value("observer_cpu", 0.0) + own.value("observer_cpu", 0.0);
  metrics["server_resources"] = own;
}

void AddLink(const Observation& seen, Json& metrics) {
  if (!seen.link) return;
  metrics["link"] = {{"to_server_bytes", seen.link->to_server},
                     {"from_server_bytes", seen.link->from_server}};
  if (seen.link->gbit_per_s > 0) metrics["link"]["gbit_per_s"] = seen.link->gbit_per_s;
  PutIfAny(metrics["link"], "rate_changes", seen.link->rate_changes);
  PutIfAny(metrics["link"], "latest_change_ms", seen.link->latest_change_ms);
}

// Share of the time that was measured, in which the busier direction of the link was full.
double LinkBusy(const Observation& seen, double sending_s) {
  if (!seen.link || seen.link->gbit_per_s <= 0 || sending_s <= 0) return 0;
  const auto bytes = static_cast<double>(std::max(seen.link->to_server, seen.link->from_server));
  return std::min(1.0, bytes * 8e-9 / seen.link->gbit_per_s / sending_s);
}

double RecogniserBusy(const Json& metrics, const Setting& setting) {
  const Json& resources = metrics["resources"];
  if (resources.contains("gpu_percent")) return MeanOf(resources, "gpu_percent") / 100;
  const double threads = setting.threads > 0 ? setting.threads : metrics.value("machine_cpus", 0.0);
  return threads > 0 ? MeanOf(resources, "recogniser_cpu") / threads : 0;
}

bool IsOverlapped(const Setting& setting) {
  if (setting.mode == Mode::kSync) return false;
  return std::holds_alternative<ClosedLoad>(setting.load) ? setting.in_flight.value_or(1) > 1
                                                          : setting.in_flight.value_or(2) > 1;
}

void PutBottleneck(Json& metrics, const std::string& name, double share) {
  metrics["bottleneck"] = name;
  metrics["bottleneck_share"] = share;
}

// The application names the bottleneck on its own side; of what lies behind its client it only knows that it
// is there.
void AddBottleneck(const Json& result, const Setting& setting, const Observation& seen, double sending_s,
                   Json& metrics) {
  const Json bottleneck = result.value("bottleneck", Json::object());
  const std::string stage = bottleneck.value("stage", std::string());
  const bool beyond = stage == "server" || stage.empty();
  if (!beyond) return PutBottleneck(metrics, stage, bottleneck.value("share", 0.0));
  if (setting.architecture == Architecture::kInProcess) return;
  const double cores = metrics.value("machine_cpus", 0.0);
  const double busy = cores > 0 ? MeanOf(metrics["resources"], "client_cpu") / cores : 0;
  const double stolen = metrics["resources"].value("steal_percent", 0.0) / 100;  // wanted, and not given
  const results::Bottleneck found =
      FindBottleneck(results::Busy{.link = LinkBusy(seen, sending_s),
                                   .recogniser = RecogniserBusy(metrics, setting),
                                   .cores = std::min(1.0, busy + stolen),
                                   .overlapped = IsOverlapped(setting)});
  PutBottleneck(metrics, found.stage, found.share);
}

// Why Table 2 has holes.
void AddAbsences(const Json& result, const Setting& setting, const Observation& seen, Json& metrics) {
  Json absent = Json::object();
  for (const Json& level : result.value("levels", Json::array())) {
    if (level.contains("split_left_out")) absent["split_ms"] = level["split_left_out"];
  }
  const Json& resources = metrics["resources"];
  if (!metrics.contains("stages_ms"))
    absent["stages_ms"] =
        "the load generator's requests are made beforehand: split_ms says where its time goes";
  if (setting.architecture == Architecture::kInProcess)
    absent["server_resources"] = "there is no server in one process";
  else if (!seen.there_absent.empty())
    absent["server_resources"] = seen.there_absent;
  if (!resources.contains("gpu_percent")) absent["resources"]["gpu_percent"] = "there is no accelerator";
  if (!resources.contains("container_memory_bytes"))
    absent["resources"]["container_memory_bytes"] =
        setting.architecture == Architecture::kMicroservice
            ? "the container's control group does not tell its memory"
            : "there is no container";
  if (!seen.responses_absent.empty()) absent["response_ms"] = seen.responses_absent;
  metrics["absent"] = std::move(absent);
}

}  // namespace

Result<Outcome> MakeOutcome(const Json& result, const Setting& setting, const Observation& seen) {
  Outcome outcome;
  Json& metrics = outcome.metrics;
  const bool is_application = std::holds_alternative<ApplicationLoad>(setting.load);
  double sending_s = 0;
  Json server;
  if (is_application) {
    server = result.value("server_resources", Json());
    if (TRY(GetInteger(result, "images")) <= 0) return Fail(ErrorCode::kIo, "no picture was answered");
    TRY(GetNumber(result, "throughput_images_per_s"));
    sending_s = TRY(GetNumber(result, "wall_s"));
    Take(result, kRunKeys, metrics);
    metrics["resources"] = result.value("resources", Json::object());
  } else {
    const Json levels = result.value("levels", Json::array());
    if (levels.size() != 1) return Fail(ErrorCode::kCorrupt, "the load generator told of no level");
    const Json& level = levels.front();
    server = level.value("server_resources", Json());
    if (TRY(GetInteger(level, "answered")) <= 0) {
      const Json words = level.value("error_messages", Json::array());
      return Fail(ErrorCode::kIo, words.empty()
                                      ? "nothing was answered"
                                      : "nothing was answered: " + words.front().get<std::string>());
    }
    // The link carried the warm-up too.
    sending_s = TRY(GetNumber(level, "measured_s"));
    for (const Json& run : level.value("runs", Json::array())) sending_s += run.value("warm_up_s", 0.0);
    Take(level, kLevelKeys, metrics);
    metrics["throughput_images_per_s"] = TRY(GetNumber(level, "rows_per_s"));
    metrics["resources"] = level.value("resources", Json::object());
    outcome.verdict = TRY(ReadVerdict(level, std::holds_alternative<OpenLoad>(setting.load)));
  }
  if (seen.responses) {
    Take(*seen.responses, kResponseKeys, metrics);
    metrics["response_of"] = "the load generator, a closed loop after the application";
  }
  DropIntervals(metrics);
  const Json provenance = result.value("provenance", Json::object());
  metrics["machine_cpus"] = provenance.value("usable_cpus", 0.0);
  if (seen.server_start_s) metrics["server_start_s"] = *seen.server_start_s;
  // The server's own page tells of its accelerator; of the rest its node's kernel knows more.
  if (seen.there) {
    if (!server.is_object()) server = Json::object();
    server.update(*seen.there);
  }
  AddServer(server, setting, metrics);
  if (is_application)
    outcome.verdict = JudgeMachine(result.value("resources", Json::object()), metrics, seen);
  AddLink(seen, metrics);
  AddBottleneck(result, setting, seen, sending_s, metrics);
  if (seen.answers_differ) {
    metrics["answers_compared"] = seen.answers;
    metrics["answers_differ"] = *seen.answers_differ;
  }
  AddAbsences(result, setting, seen, metrics);
  return outcome;
}

}  // namespace weir::trial
