#include "trial/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "results/bottleneck.h"
#include "results/provenance.h"
#include "results/thresholds.h"

namespace weir::trial {
namespace {

namespace threshold = results::threshold;
using results::LoadResult;
using results::Resources;
using results::RunResult;
using results::TrialMetrics;

double MeanOf(const std::optional<results::Range>& range) { return range ? range->mean : 0.0; }

// Cores of the client's machine that others than the system under test used; nothing where one cannot tell.
std::optional<double> ForeignCpu(const Resources& resources, const Observation& seen) {
  if (!resources.client_cpu || !resources.app_cpu) return std::nullopt;
  // The recogniser is counted apart from the application, in its process and in a server's.
  const bool is_recogniser_here = !seen.there && seen.there_absent.empty();
  if (is_recogniser_here && !resources.recogniser_cpu) return std::nullopt;
  return MeanOf(resources.client_cpu) - MeanOf(resources.app_cpu) -
         (is_recogniser_here ? MeanOf(resources.recogniser_cpu) : 0.0) - resources.observer_cpu;
}

// Judges the state of the machine for clients that do not judge themselves. `resources`: the client's alone.
// The phases are part of the trial, although the client's account takes their CPU time for that of others.
void AddPhases(const TrialMetrics::Beside& beside, Outcome& outcome) {
  outcome.metrics.beside = beside;
  results::Verdict& verdict = outcome.verdict;
  const auto foreign = std::erase_if(
      verdict.causes, [](const auto& cause) { return cause.reason == results::Reason::kForeignCpu; });
  if (foreign > 0 && verdict.causes.empty() && verdict.standing == results::Standing::kSuspect)
    verdict.standing = results::Standing::kValid;
}

results::Verdict JudgeMachine(const Resources& resources, const TrialMetrics& metrics,
                              const Observation& seen) {
  using results::Reason, results::Standing;
  results::Verdict verdict;
  const double cores = metrics.machine_cpus;
  const double foreign = ForeignCpu(*metrics.resources, seen).value_or(0);
  if (cores > 0 && foreign > threshold::kForeignShareOfTrial * cores)
    verdict.Add(Standing::kSuspect,
                {Reason::kForeignCpu, fmt::format("others used {:.2g} of {:g} cores, limit {:g} %", foreign,
                                                  cores, 100 * threshold::kForeignShareOfTrial)});
  const double steal = resources.steal_percent.value_or(0);
  if (steal > threshold::kStealPercent)
    verdict.Add(Standing::kSuspect,
                {Reason::kSteal, fmt::format("the hypervisor took {:.2g} % of the CPU time, limit {:g} %",
                                             steal, threshold::kStealPercent)});
  const double throttled = resources.wall_s > 0 ? resources.throttled_s.value_or(0) / resources.wall_s : 0;
  if (throttled > threshold::kThrottledShare)
    verdict.Add(Standing::kInvalid,
                {Reason::kThrottling,
                 fmt::format("the control group's quota held the work back for {:.2g} % of the time",
                             100 * throttled)});
  return verdict;
}

// Reads the claim that is asked for: the latency at a rate, else the throughput.
Result<results::Verdict> ReadVerdict(const LoadResult::Level& level, bool of_latency) {
  const std::string claim = of_latency ? "latency" : "throughput";
  results::Verdict verdict;
  verdict.standing =
      TRY(results::ReadStanding(of_latency ? level.verdict.latency : level.verdict.throughput));
  for (const LoadResult::Reason& reason : level.reasons) {
    if (std::ranges::find(reason.about, claim) != reason.about.end())
      verdict.causes.push_back({TRY(results::ReadReason(reason.reason)), reason.evidence});
  }
  return verdict;
}

void TakeRun(const RunResult& result, TrialMetrics& metrics) {
  metrics.throughput_images_per_s = result.throughput_images_per_s;
  metrics.wall_s = result.wall_s;
  metrics.images = result.images;
  metrics.rejected = result.rejected;
  metrics.stages_ms = result.stages_ms;
  metrics.bounds = result.bounds;
  metrics.cpu_ms_per_image = result.cpu_ms_per_image;
  metrics.accuracy = result.accuracy;
  if (const auto& server = result.engine.server_ms) {
    metrics.server = TrialMetrics::ServerTimes{.queue = server->queue,
                                               .compute_input = server->compute_input,
                                               .compute_infer = server->compute_infer,
                                               .compute_output = server->compute_output,
                                               .request = {},
                                               .outside = {},
                                               .receive = {},
                                               .rows_per_batch = {}};
  }
  metrics.server_mean_batch = result.engine.server_mean_batch;
  metrics.resources = result.resources;
}

// The times of requests, which a load generator beside the application tells as well.
void TakeResponses(const LoadResult::Level& level, TrialMetrics& metrics) {
  metrics.response = level.response;
  metrics.service = level.service;
  metrics.response_counts = level.response_counts;
  metrics.split = level.split;
  metrics.slowest = level.slowest;
}

void TakeLevel(const LoadResult::Level& level, TrialMetrics& metrics) {
  TakeResponses(level, metrics);
  metrics.throughput_per_s = level.throughput_per_s;
  metrics.rows_per_s = level.rows_per_s;
  metrics.first_byte = level.first_byte;
  metrics.slip = level.slip;
  if (const auto& server = level.server) {
    metrics.server = TrialMetrics::ServerTimes{.queue = server->queue,
                                               .compute_input = server->compute_input,
                                               .compute_infer = server->compute_infer,
                                               .compute_output = server->compute_output,
                                               .request = server->request,
                                               .outside = server->outside,
                                               .receive = server->receive,
                                               .rows_per_batch = server->rows_per_batch};
  }
  metrics.server_requests = level.server_requests;
  metrics.answered = level.answered;
  metrics.failed = level.failed;
  metrics.unsent = level.unsent;
  metrics.planned = level.planned;
  metrics.client_cpu_us_per_request = level.client_cpu_us_per_request;
  metrics.spin_cpu_s = level.spin_cpu_s;
  metrics.throughput_images_per_s = level.rows_per_s;
  metrics.resources = level.resources.value_or(Resources{});
}

// Everything that is the server's, over the client's account of its own side.
void AddServer(const Resources& own, const Setting& setting, TrialMetrics& metrics) {
  Resources& resources = *metrics.resources;
  const auto take = [](const auto& from, auto& to) {
    if (from) to = from;
  };
  take(own.app_cpu, resources.recogniser_cpu);  // of its processes
  take(own.client_cpu, resources.server_cpu);   // of its machine
  take(own.gpu_percent, resources.gpu_percent);
  take(own.host_memory_bytes, resources.host_memory_bytes);
  take(own.container_memory_bytes, resources.container_memory_bytes);
  take(own.throttled_s, resources.throttled_s);
  // A container without a control group of its own: what its processes have resident.
  if (setting.architecture == Architecture::kMicroservice && !own.container_memory_bytes &&
      own.process_memory_bytes) {
    resources.container_memory_bytes = own.process_memory_bytes;
    metrics.container_memory_is = "resident in its processes: it has no control group of its own";
  }
  resources.observer_cpu += own.observer_cpu;
  metrics.server_resources = own;
}

void AddLink(const Observation::Link& link, TrialMetrics& metrics) {
  metrics.link = {.to_server_bytes = link.to_server,
                  .from_server_bytes = link.from_server,
                  .gbit_per_s = link.gbit_per_s > 0 ? std::optional(link.gbit_per_s) : std::nullopt,
                  .rate_changes = link.rate_changes,
                  .latest_change_ms = link.latest_change_ms};
}

// `moved`: calls that the client sent again.
void AddServers(const Observation& seen, const Setting& setting, int64_t moved, TrialMetrics& metrics) {
  if (seen.server_urls.empty()) return;
  std::vector<results::ServerShares::Server> each;
  for (size_t i = 0; i < seen.server_urls.size(); ++i)
    each.push_back({.server = seen.server_urls[i], .answered = seen.server_answers[i]});
  metrics.servers = results::MakeServerShares(std::string(ToString(setting.balancer)), std::move(each));
  metrics.servers->retried = moved;
}

// Share of the time that was measured, in which the busier direction of the link was full.
double LinkBusy(const Observation& seen, double sending_s) {
  if (!seen.link || seen.link->gbit_per_s <= 0 || sending_s <= 0) return 0;
  const auto bytes = static_cast<double>(std::max(seen.link->to_server, seen.link->from_server));
  return std::min(1.0, bytes * 8e-9 / seen.link->gbit_per_s / sending_s);
}

double RecogniserBusy(const TrialMetrics& metrics, const Setting& setting) {
  const Resources& resources = *metrics.resources;
  if (resources.gpu_percent) return MeanOf(resources.gpu_percent) / 100;
  const double threads = setting.threads > 0 ? setting.threads : metrics.machine_cpus;
  return threads > 0 ? MeanOf(resources.recogniser_cpu) / threads : 0;
}

bool IsOverlapped(const Setting& setting) {
  if (setting.mode == Mode::kSync) return false;
  return std::holds_alternative<ClosedLoad>(setting.load) ? setting.in_flight.value_or(1) > 1
                                                          : setting.in_flight.value_or(2) > 1;
}

void PutBottleneck(const results::Bottleneck& bottleneck, TrialMetrics& metrics) {
  metrics.bottleneck = bottleneck.stage;
  metrics.bottleneck_share = bottleneck.share;
}

// The application names the bottleneck on its own side; of what lies behind its client it only knows that it
// is there.
void AddBottleneck(const std::optional<results::Bottleneck>& named, const Setting& setting,
                   const Observation& seen, double sending_s, TrialMetrics& metrics) {
  if (named && named->stage != "server" && !named->stage.empty()) return PutBottleneck(*named, metrics);
  if (setting.architecture == Architecture::kInProcess) return;
  const double cores = metrics.machine_cpus;
  const double busy = cores > 0 ? MeanOf(metrics.resources->client_cpu) / cores : 0;
  const double stolen = metrics.resources->steal_percent.value_or(0) / 100;  // wanted, and not given
  PutBottleneck(FindBottleneck(results::Busy{.link = LinkBusy(seen, sending_s),
                                             .recogniser = RecogniserBusy(metrics, setting),
                                             .cores = std::min(1.0, busy + stolen),
                                             .overlapped = IsOverlapped(setting)}),
                metrics);
}

// Why Table 2 has holes.
void AddAbsences(const Setting& setting, const Observation& seen, TrialMetrics& metrics) {
  TrialMetrics::Absent& absent = metrics.absent;
  if (!metrics.stages_ms && metrics.watch)
    absent.stages_ms = "weir watch tells the stages of live frames itself: repeat the trial's command";
  else if (!metrics.stages_ms)
    absent.stages_ms = "the load generator's requests are made beforehand: split_ms says where its time goes";
  if (setting.architecture == Architecture::kInProcess)
    absent.server_resources = "there is no server in one process";
  else if (!seen.there_absent.empty())
    absent.server_resources = seen.there_absent;
  TrialMetrics::Absent::Resources resources;
  if (!metrics.resources->gpu_percent) resources.gpu_percent = "there is no accelerator";
  if (!metrics.resources->container_memory_bytes)
    resources.container_memory_bytes = setting.architecture == Architecture::kMicroservice
                                           ? "the container's control group does not tell its memory"
                                           : "there is no container";
  if (resources != TrialMetrics::Absent::Resources{}) absent.resources = std::move(resources);
  if (!seen.responses_absent.empty()) absent.response_ms = seen.responses_absent;
}

// The parts that both clients tell in forms of their own.
struct ClientSide {
  std::optional<Resources> server;
  std::optional<results::Bottleneck> bottleneck;
  double sending_s = 0;
  double usable_cpus = 0;
  int64_t moved = 0;  // calls that were sent again to another server
};

Result<double> UsableCpusOf(const Json& provenance) {
  const auto read = TRY_CONTEXT(results::Provenance::FromJson(provenance), "provenance");
  return read.usable_cpus;
}

Result<ClientSide> ReadRun(const RunResult& result, Outcome& outcome) {
  if (result.images <= 0) return Fail(ErrorCode::kIo, "no picture was answered");
  if (!result.throughput_images_per_s)
    return Fail(ErrorCode::kCorrupt, "the application told of no throughput");
  TakeRun(result, outcome.metrics);
  return ClientSide{.server = result.server_resources,
                    .bottleneck = result.bottleneck,
                    .sending_s = result.wall_s,
                    .usable_cpus = TRY(UsableCpusOf(result.provenance)),
                    .moved = result.servers ? result.servers->retried : 0};
}

Result<ClientSide> ReadLoad(const LoadResult& result, const Setting& setting, Outcome& outcome) {
  if (result.levels.size() != 1) return Fail(ErrorCode::kCorrupt, "the load generator told of no level");
  const LoadResult::Level& level = result.levels.front();
  if (level.answered <= 0) {
    const auto& words = level.error_messages;
    return Fail(ErrorCode::kIo,
                words.empty() ? "nothing was answered" : "nothing was answered: " + words.front());
  }
  TakeLevel(level, outcome.metrics);
  outcome.metrics.absent.split_ms = level.split_left_out;
  outcome.verdict = TRY(ReadVerdict(level, std::holds_alternative<OpenLoad>(setting.load)));
  // The link carried the warm-up too.
  double sending_s = level.measured_s;
  for (const LoadResult::Run& run : level.runs) sending_s += run.warm_up_s.value_or(0);
  return ClientSide{.server = level.server_resources,
                    .bottleneck = {},
                    .sending_s = sending_s,
                    .usable_cpus = TRY(UsableCpusOf(result.provenance)),
                    .moved = level.servers ? level.servers->retried : 0};
}

// From capture to answer, of the answered frames.
LoadResult::Times ResponseOf(const results::WatchResult::Times& times) {
  LoadResult::Times response{.mean = times.mean,
                             .standard_deviation = {},
                             .min = times.min,
                             .percentiles = {},
                             .max = times.max,
                             .n = times.n,
                             .intervals_95 = {}};
  const std::optional<double> known[] = {times.p50, times.p90, times.p95, times.p99, times.p99_9};
  static_assert(std::size(known) == LoadResult::kPercentileCount);
  std::ranges::copy(known, response.percentiles.begin());
  return response;
}

Result<ClientSide> ReadWatch(const results::WatchResult& result, Outcome& outcome) {
  if (result.frames.answered <= 0) return Fail(ErrorCode::kIo, "no frame of the streams was answered");
  if (!result.resources) return Fail(ErrorCode::kCorrupt, "the watch told of no resources");
  TrialMetrics& metrics = outcome.metrics;
  metrics.throughput_images_per_s =
      static_cast<double>(result.frames.answered) / std::max(1e-9, result.wall_s);
  metrics.wall_s = result.wall_s;
  metrics.images = result.frames.answered;
  if (result.latency_ms) metrics.response = ResponseOf(*result.latency_ms);
  metrics.response_of = "live streams, from a frame's capture to its answer";
  metrics.watch = TrialMetrics::Watch{.captured = result.frames.captured,
                                      .answered = result.frames.answered,
                                      .in_time = result.frames.in_time,
                                      .dropped = result.frames.dropped,
                                      .in_time_percent = result.in_time_percent.value_or(0),
                                      .cpu_ms_per_frame = result.cpu_ms_per_frame};
  metrics.resources = *result.resources;
  return ClientSide{.server = result.server_resources,
                    .bottleneck = result.bottleneck,
                    .sending_s = result.wall_s,
                    .usable_cpus = TRY(UsableCpusOf(result.provenance))};
}

Result<ClientSide> ReadClient(const ClientResult& result, const Setting& setting, Outcome& outcome) {
  if (const auto* run = std::get_if<RunResult>(&result)) return ReadRun(*run, outcome);
  if (const auto* watch = std::get_if<results::WatchResult>(&result)) return ReadWatch(*watch, outcome);
  return ReadLoad(std::get<LoadResult>(result), setting, outcome);
}

}  // namespace

Result<Outcome> MakeOutcome(const ClientResult& result, const Setting& setting, const Observation& seen) {
  Outcome outcome;
  TrialMetrics& metrics = outcome.metrics;
  ClientSide client = TRY(ReadClient(result, setting, outcome));
  if (seen.responses) {
    TakeResponses(*seen.responses, metrics);
    metrics.response_of = "the load generator, a closed loop after the application";
  }
  metrics.machine_cpus = client.usable_cpus;
  metrics.server_start_s = seen.server_start_s;
  // The server's own page tells of its accelerator; of the rest its node's kernel knows more.
  if (seen.there) {
    if (!client.server) client.server.emplace();
    client.server->Update(*seen.there);
  }
  if (client.server) AddServer(*client.server, setting, metrics);
  if (const auto* run = std::get_if<RunResult>(&result))
    outcome.verdict = JudgeMachine(run->resources, metrics, seen);
  if (const auto* watch = std::get_if<results::WatchResult>(&result))
    outcome.verdict = JudgeMachine(*watch->resources, metrics, seen);
  if (seen.link) AddLink(*seen.link, metrics);
  AddServers(seen, setting, client.moved, metrics);
  if (seen.beside) AddPhases(*seen.beside, outcome);
  AddBottleneck(client.bottleneck, setting, seen, client.sending_s, metrics);
  if (seen.answers_differ) {
    metrics.answers_compared = seen.answers;
    metrics.answers_differ = seen.answers_differ;
  }
  AddAbsences(setting, seen, metrics);
  return outcome;
}

}  // namespace weir::trial
