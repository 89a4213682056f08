#include "trial/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "oip/server_account.h"
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

constexpr double kAnyNumber = 1e9;  // of requests on their way

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

// The client's processes and, where there is a server, its container or its processes.
void AddMemory(const std::optional<Resources>& server, const Setting& setting, TrialMetrics& metrics) {
  metrics.memory = metrics.resources->process_memory_bytes;
  if (!metrics.memory || setting.architecture == Architecture::kInProcess) return;
  const auto of_server = !server                          ? std::nullopt
                         : server->container_memory_bytes ? server->container_memory_bytes
                                                          : server->process_memory_bytes;
  if (!of_server) return metrics.memory.reset();
  metrics.memory->mean += of_server->mean;
  metrics.memory->min += of_server->min;
  metrics.memory->max += of_server->max;
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

void PutBottleneck(const results::Bottleneck& bottleneck, TrialMetrics& metrics) {
  metrics.bottleneck = bottleneck.stage;
  metrics.bottleneck_share = bottleneck.share;
  if (!bottleneck.next_images_per_s) return;
  metrics.bottleneck_next = bottleneck.next;
  metrics.bottleneck_next_images_per_s = bottleneck.next_images_per_s;
}

// In a study the engine has one name, wherever it computes.
std::string InStudy(const std::string& stage) { return stage == "server" ? "infer" : stage; }

void FindTrialBottleneck(const results::Costs& costs, TrialMetrics& metrics) {
  results::Bounds bounds = FindBounds(costs);
  if (auto found = FindBottleneck(costs)) {
    const std::string contradiction =
        Contradiction(bounds, found->stage, metrics.throughput_images_per_s.value_or(0));
    if (!contradiction.empty()) {
      metrics.bottleneck_contradiction = contradiction;
      found->next_images_per_s.reset();
    }
    const bool is_known = !costs.remote || costs.server;
    if (is_known) found->stage = InStudy(found->stage);
    found->next = InStudy(found->next);
    PutBottleneck(*found, metrics);
  }
  if (costs.remote) bounds.infer = std::exchange(bounds.server, std::nullopt);
  metrics.bounds = bounds;
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
  std::optional<results::Bottleneck> bottleneck;  // that it names itself, without costs
  std::optional<results::Costs> costs;            // as the client sees them
  double requests = 0, rows_per_request = 1;
  double sending_s = 0;  // with the warm-up, as the link saw it
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
  const auto rows = static_cast<double>(std::max<int64_t>(1, result.batch));
  return ClientSide{.server = result.server_resources,
                    .bottleneck = result.bottleneck,
                    .costs = result.costs,
                    .requests = std::ceil(static_cast<double>(result.images) / rows),
                    .rows_per_request = rows,
                    .sending_s = result.wall_s,
                    .usable_cpus = TRY(UsableCpusOf(result.provenance)),
                    .moved = result.servers ? result.servers->retried : 0};
}

// A load generator keeps its slots full, so what it waits for are round trips; at a rate any number of them.
results::Costs CostsOf(const LoadResult::Level& level, double rows, double cores) {
  const auto answered = static_cast<double>(level.answered);
  results::Costs costs{.images = answered * rows,
                       .wall_s = level.measured_s,
                       .cores = cores,
                       .loaders = 0,
                       .remote = true,
                       .in_flight = static_cast<int>(level.concurrency.value_or(0)),
                       .round_trip_s = 1e-3 * answered * level.service.mean.value_or(0),
                       .held_back_s = level.measured_s,
                       .other_cpu_s = 1e-6 * answered * level.client_cpu_us_per_request.value_or(0)};
  if (level.request_rate && *level.request_rate > 0) costs.rate_limit_s = answered / *level.request_rate;
  return costs;
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
  const double cpus = TRY(UsableCpusOf(result.provenance));
  const auto rows = static_cast<double>(std::max<int64_t>(1, result.batch));
  return ClientSide{.server = level.server_resources,
                    .bottleneck = {},
                    .costs = setting.architecture == Architecture::kInProcess
                                 ? std::nullopt
                                 : std::optional(CostsOf(level, rows, cpus)),
                    .requests = static_cast<double>(level.answered),
                    .rows_per_request = rows,
                    .sending_s = sending_s,
                    .usable_cpus = cpus,
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

bool ServerIsHere(const Setting& setting, const Observation& seen) {
  return setting.architecture != Architecture::kInProcess && !seen.there && seen.there_absent.empty() &&
         (!setting.server || setting.server->url.empty());
}

// Adds what the trial knows of the link: its capacity, its bytes and its delay. A server here is behind none
// but the one that the trial made.
void AddLinkCosts(const Setting& setting, const Observation& seen, const ClientSide& client,
                  results::Costs& costs) {
  if (seen.link && seen.link->gbit_per_s > 0 && client.sending_s > 0) {
    const auto bytes = static_cast<double>(std::max(seen.link->to_server, seen.link->from_server));
    costs.link_s = bytes * 8e-9 / seen.link->gbit_per_s * costs.wall_s / client.sending_s;
  } else if (ServerIsHere(setting, seen)) {
    costs.link_s = 0;
  }
  costs.link_delay_s = 2 * Seconds(setting.network.delay) * client.requests;
}

double ServerCores(const Setting& setting, double machine_cpus) {
  if (setting.limits.serve) return *setting.limits.serve;
  return setting.server_cpus.empty() ? machine_cpus : static_cast<double>(setting.server_cpus.size());
}

// Adds the server's own account, its CPU time where it takes it from the same cores, and what others took.
void AddServerCosts(const Setting& setting, const Observation& seen, const ClientSide& client,
                    const TrialMetrics& metrics, results::Costs& costs) {
  const Resources& resources = *metrics.resources;
  const bool here = ServerIsHere(setting, seen);
  const auto cpu =
      resources.recogniser_cpu ? std::optional(resources.recogniser_cpu->mean * costs.wall_s) : std::nullopt;
  if (const auto& told = metrics.server) {
    const double s = 1e-3 * client.requests;
    results::ServerAccount account{
        .requests = client.requests,
        .queue_s = s * told->queue,
        .input_s = s * told->compute_input,
        .infer_s = s * told->compute_infer,
        .output_s = s * told->compute_output,
        .rows_per_batch = metrics.server_mean_batch.value_or(told->rows_per_batch.value_or(0)),
        .rows_per_request = client.rows_per_request,
        .cpu_s = cpu,
        .cores = here ? ServerCores(setting, metrics.machine_cpus) : 0};
    const double in_flight = costs.in_flight > 0 ? costs.in_flight : kAnyNumber;
    if (seen.served)
      oip::AddConfigured(*seen.served, setting.servers, in_flight * client.rows_per_request, account);
    costs.server = results::CostsOf(account);
  }
  if (here && setting.server_cpus.empty() && cpu) costs.server_cpu_s = *cpu;
  if (!resources.client_cpu) return;
  const double stolen = resources.steal_percent.value_or(0) / 100 * costs.cores;  // wanted, and not given
  costs.foreign_cpu_s =
      std::max(0.0, (resources.client_cpu->mean + stolen) * costs.wall_s - results::CpuSum(costs));
}

void AddBottleneck(const ClientSide& client, const Setting& setting, const Observation& seen,
                   TrialMetrics& metrics) {
  if (!client.costs) {
    if (client.bottleneck && !client.bottleneck->stage.empty()) PutBottleneck(*client.bottleneck, metrics);
    return;
  }
  results::Costs costs = *client.costs;
  if (costs.remote) {
    AddLinkCosts(setting, seen, client, costs);
    AddServerCosts(setting, seen, client, metrics, costs);
  }
  FindTrialBottleneck(costs, metrics);
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
  AddMemory(client.server, setting, metrics);
  if (client.server) AddServer(*client.server, setting, metrics);
  if (const auto* run = std::get_if<RunResult>(&result))
    outcome.verdict = JudgeMachine(run->resources, metrics, seen);
  if (const auto* watch = std::get_if<results::WatchResult>(&result))
    outcome.verdict = JudgeMachine(*watch->resources, metrics, seen);
  if (seen.link) AddLink(*seen.link, metrics);
  AddServers(seen, setting, client.moved, metrics);
  if (seen.beside) AddPhases(*seen.beside, outcome);
  AddBottleneck(client, setting, seen, metrics);
  if (seen.answers_differ) {
    metrics.answers_compared = seen.answers;
    metrics.answers_differ = seen.answers_differ;
  }
  AddAbsences(setting, seen, metrics);
  return outcome;
}

}  // namespace weir::trial
