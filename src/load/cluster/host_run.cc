#include "load/cluster/host_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/fields.h"
#include "load/verdict/level_verdict.h"

namespace weir::load {
namespace {

// A series in JSON.
struct SeriesForm {
  int64_t width_ns = 0;
  std::vector<int64_t> counts;
  std::vector<double> sums;
};

SeriesForm FormOf(const Series& series) {
  SeriesForm form{.width_ns = series.width().count()};
  for (const Series::Slice& slice : series.slices()) {
    form.counts.push_back(slice.count);
    form.sums.push_back(slice.sum);
  }
  return form;
}

Result<Series> SeriesFrom(const SeriesForm& form) {
  std::vector<Series::Slice> slices;
  if (form.counts.size() != form.sums.size()) return Fail(ErrorCode::kCorrupt, "a series is broken");
  for (size_t i = 0; i < form.counts.size(); ++i) slices.push_back({form.counts[i], form.sums[i]});
  auto made = Series::Make(Duration(form.width_ns), std::move(slices));
  if (!made) return Fail(ErrorCode::kCorrupt, "a series is broken");
  return *std::move(made);
}

struct PhaseForm {
  uint64_t count = 0;
  int64_t total_ns = 0;
};

struct CallsForm {
  std::string server;
  uint64_t answered = 0, failed = 0, moved = 0;
};

// The fields of a HostRun that are not in the block.
struct Form {
  std::vector<int64_t> ended;
  int64_t late = 0, left = 0, answered_within = 0;
  double empty_seconds = 0;
  SeriesForm response_series, done_series;
  int64_t begun = 0, answered = 0, warm_up_requests = 0, samples_lost = 0;
  double warm_up_s = 0, measured_s = 0, cpu_s = 0, spin_s = 0, busiest_thread = 0, empty_share = 0;
  std::string busiest_thread_name;
  bool interrupted = false, by_count = false;
  std::vector<std::string> errors;
  std::optional<double> rate, ceiling_per_s, steal_percent, foreign_cpu, throttled_s;
  int cpus = 1;
  uint64_t rows = 0, batches = 0;
  std::vector<PhaseForm> phases;
  std::vector<CallsForm> calls;
  std::optional<int64_t> counted, ours_at_most;
};

template <typename F>
void Describe(F& fields, Described<F, SeriesForm>& series) {
  fields("width_ns", series.width_ns);
  fields("counts", series.counts);
  fields("sums", series.sums);
  fields.Require(cluster::AreCounts(series.counts), "a series with a count that is none");
}

template <typename F>
void Describe(F& fields, Described<F, PhaseForm>& phase) {
  fields("count", phase.count);
  fields("total_ns", phase.total_ns);
  fields.Require(cluster::AreCounts<uint64_t>({phase.count}) && cluster::AreCounts<int64_t>({phase.total_ns}),
                 "a phase with a count that is none");
}

template <typename F>
void Describe(F& fields, Described<F, CallsForm>& calls) {
  fields("server", calls.server);
  fields("answered", calls.answered);
  fields("failed", calls.failed);
  fields("moved", calls.moved);
  fields.Require(cluster::AreCounts<uint64_t>({calls.answered, calls.failed, calls.moved}),
                 "calls with a count that is none");
}

template <typename F>
void Describe(F& fields, Described<F, Form>& form) {
  fields("ended", form.ended);
  fields("late", form.late);
  fields("left", form.left);
  fields("answered_within", form.answered_within);
  fields("empty_seconds", form.empty_seconds);
  fields("response_series", form.response_series);
  fields("done_series", form.done_series);
  fields("begun", form.begun);
  fields("answered", form.answered);
  fields("warm_up_requests", form.warm_up_requests);
  fields("samples_lost", form.samples_lost);
  fields.FromZero("warm_up_s", form.warm_up_s);
  fields.FromZero("measured_s", form.measured_s);
  fields.FromZero("cpu_s", form.cpu_s);
  fields.FromZero("spin_s", form.spin_s);
  fields.FromZero("busiest_thread", form.busiest_thread);
  fields.FromZero("empty_share", form.empty_share);
  fields("busiest_thread_name", form.busiest_thread_name);
  fields("interrupted", form.interrupted);
  fields("by_count", form.by_count);
  fields("errors", form.errors);
  fields("rate", form.rate);
  fields("ceiling_per_s", form.ceiling_per_s);
  fields("steal_percent", form.steal_percent);
  fields("foreign_cpu", form.foreign_cpu);
  fields("throttled_s", form.throttled_s);
  fields("cpus", form.cpus);
  fields("rows", form.rows);
  fields("batches", form.batches);
  fields("phases", form.phases);
  fields("calls", form.calls);
  fields("counted", form.counted);
  fields("ours_at_most", form.ours_at_most);
  fields.Require(cluster::AreCounts(form.ended) && cluster::AreCounts<uint64_t>({form.rows, form.batches}) &&
                     cluster::AreCounts<int64_t>({form.late, form.left, form.answered_within, form.begun,
                                                  form.answered, form.warm_up_requests, form.samples_lost,
                                                  form.counted.value_or(0), form.ours_at_most.value_or(0)}),
                 "a count that is none");
  fields.Require(form.cpus >= 1, "a host without a CPU");
}

template <typename Totals>
auto PhasesOf(Totals& totals) {
  return std::array{&totals.success,       &totals.fail,          &totals.queue,
                    &totals.compute_input, &totals.compute_infer, &totals.compute_output};
}

}  // namespace

cluster::Message ToMessage(const HostRun& run) {
  const RunOutcome& played = run.played;
  const Tally& tally = played.tally;
  Form form{.ended = {tally.ended.begin(), tally.ended.end()},
            .late = tally.late,
            .left = tally.left,
            .answered_within = tally.answered_within,
            .empty_seconds = tally.empty_seconds,
            .response_series = FormOf(tally.response_series),
            .done_series = FormOf(tally.done_series),
            .begun = played.requests.begun,
            .answered = played.requests.answered,
            .warm_up_requests = played.warm_up_requests,
            .samples_lost = played.samples_lost,
            .warm_up_s = played.warm_up_s,
            .measured_s = played.measured_s,
            .cpu_s = played.cpu_s,
            .spin_s = played.spin_s,
            .busiest_thread = played.busiest_thread,
            .empty_share = played.empty_share,
            .busiest_thread_name = played.busiest_thread_name,
            .interrupted = played.interrupted,
            .by_count = played.by_count,
            .errors = {},
            .rate = run.environment.rate,
            .ceiling_per_s = run.environment.ceiling_per_s,
            .steal_percent = run.environment.steal_percent,
            .foreign_cpu = run.environment.foreign_cpu,
            .throttled_s = run.environment.throttled_s,
            .cpus = run.environment.cpus,
            .rows = run.server.rows,
            .batches = run.server.batches,
            .phases = {},
            .calls = {},
            .counted = {},
            .ours_at_most = {}};
  for (const std::string& error : played.errors) form.errors.push_back(EscapeBytes(error));
  for (const auto* phase : PhasesOf(run.server)) form.phases.push_back({phase->count, phase->total.count()});
  for (const infer::ServerCalls& each : run.calls)
    form.calls.push_back({EscapeBytes(each.server), each.answered, each.failed, each.moved});
  if (run.server_share) {
    form.counted = run.server_share->counted;
    form.ours_at_most = run.server_share->ours_at_most;
  }
  cluster::Message message{.body = FieldsToJson(form), .block = ""};
  cluster::AppendHistograms(message.block,
                            {&tally.response, &tally.service, &tally.send, &tally.first_byte, &tally.slip});
  return message;
}

Result<HostRun> HostRunFrom(const cluster::Message& message) {
  Form form = TRY(FieldsFromJson<Form>(message.body));
  HostRun run;
  RunOutcome& played = run.played;
  Tally& tally = played.tally;
  auto phases = PhasesOf(run.server);
  if (form.ended.size() != tally.ended.size() || form.phases.size() != phases.size())
    return Fail(ErrorCode::kCorrupt, "a host's run has other outcomes than are known here");
  std::ranges::copy(form.ended, tally.ended.begin());
  tally.late = form.late;
  tally.left = form.left;
  tally.answered_within = form.answered_within;
  tally.empty_seconds = form.empty_seconds;
  tally.response_series = TRY(SeriesFrom(form.response_series));
  tally.done_series = TRY(SeriesFrom(form.done_series));
  std::string_view block = message.block;
  TRY_STATUS(cluster::TakeHistograms(
      block, {&tally.response, &tally.service, &tally.send, &tally.first_byte, &tally.slip}));
  played.requests = {.begun = form.begun, .answered = form.answered};
  played.warm_up_requests = form.warm_up_requests;
  played.samples_lost = form.samples_lost;
  played.warm_up_s = form.warm_up_s;
  played.measured_s = form.measured_s;
  played.cpu_s = form.cpu_s;
  played.spin_s = form.spin_s;
  played.busiest_thread = form.busiest_thread;
  played.busiest_thread_name = form.busiest_thread_name;
  played.empty_share = form.empty_share;
  played.interrupted = form.interrupted;
  played.by_count = form.by_count;
  for (const std::string& error : form.errors) played.errors.push_back(TRY(UnescapeBytes(error)));
  run.environment = {.rate = form.rate,
                     .ceiling_per_s = form.ceiling_per_s,
                     .cpus = form.cpus,
                     .steal_percent = form.steal_percent,
                     .foreign_cpu = form.foreign_cpu,
                     .throttled_s = form.throttled_s};
  run.server.rows = form.rows;
  run.server.batches = form.batches;
  for (size_t i = 0; i < phases.size(); ++i)
    *phases[i] = {.count = form.phases[i].count, .total = Duration(form.phases[i].total_ns)};
  for (const CallsForm& each : form.calls)
    run.calls.push_back({TRY(UnescapeBytes(each.server)), each.answered, each.failed, each.moved});
  if (form.counted && form.ours_at_most)
    run.server_share = ServerShare{.counted = *form.counted, .ours_at_most = *form.ours_at_most};
  return run;
}

RunOutcome MergeRuns(const std::vector<HostRun>& runs) {
  RunOutcome sum = runs.front().played;
  double places = sum.measured_s;
  sum.empty_share *= sum.measured_s;
  for (size_t i = 1; i < runs.size(); ++i) {
    const RunOutcome& more = runs[i].played;
    sum.tally.Merge(more.tally);
    sum.tally.response_series.Merge(more.tally.response_series);
    sum.tally.done_series.Merge(more.tally.done_series);
    sum.requests += more.requests;
    sum.warm_up_requests += more.warm_up_requests;
    sum.samples_lost += more.samples_lost;
    sum.warm_up_s = std::max(sum.warm_up_s, more.warm_up_s);
    sum.measured_s = std::max(sum.measured_s, more.measured_s);
    sum.cpu_s += more.cpu_s;
    sum.spin_s += more.spin_s;
    if (more.busiest_thread > sum.busiest_thread) {
      sum.busiest_thread = more.busiest_thread;
      sum.busiest_thread_name = more.busiest_thread_name;
    }
    sum.empty_share += more.empty_share * more.measured_s;
    places += more.measured_s;
    sum.interrupted |= more.interrupted;
    sum.by_count |= more.by_count;
    for (const std::string& error : more.errors) {
      if (std::ranges::find(sum.errors, error) == sum.errors.end()) sum.errors.push_back(error);
    }
  }
  sum.empty_share = places > 0 ? sum.empty_share / places : 0;
  return sum;
}

Claims JudgeRuns(const std::vector<HostRun>& runs, const RunOutcome& merged, std::optional<double> rate) {
  // Whatever depends on the number of requests is judged by those of all hosts.
  Limits of_one;
  of_one.rate_share = of_one.errors = 1;
  of_one.drift = std::numeric_limits<double>::infinity();
  of_one.fewest = 0;
  Claims claims = Judge(
      merged, {.rate = rate, .ceiling_per_s = {}, .steal_percent = {}, .foreign_cpu = {}, .throttled_s = {}});
  for (const HostRun& run : runs) {
    const Claims more = Judge(run.played, run.environment, of_one);
    MergeVerdict(claims.throughput, more.throughput);
    MergeVerdict(claims.latency, more.latency);
  }
  return claims;
}

std::optional<ServerShare> MergeShares(const std::vector<HostRun>& runs) {
  std::optional<ServerShare> merged;
  for (const HostRun& run : runs) {
    if (!run.server_share) continue;
    if (!merged) merged.emplace();
    merged->counted = std::max(merged->counted, run.server_share->counted);
    merged->ours_at_most += run.server_share->ours_at_most;
  }
  if (merged) merged->ours_at_most = std::min(merged->ours_at_most, merged->counted);
  return merged;
}

infer::PhaseTotals MergeTotals(const std::vector<HostRun>& runs) {
  return std::ranges::max_element(runs, {}, [](const HostRun& run) { return run.server.success.count; })
      ->server;
}

Result<LevelShare> ShareOf(const Scenario& scenario, int64_t requests, int rank, int world) {
  const auto part = [&](int64_t whole) { return whole / world + (rank < whole % world ? 1 : 0); };
  LevelShare share{.scenario = scenario, .requests = part(requests)};
  if (requests > 0 && requests < world)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} requests over {} hosts: each needs one at least", requests, world));
  if (auto* closed = std::get_if<Concurrency>(&share.scenario)) {
    if (closed->in_flight < world)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("concurrency {} over {} hosts: each needs one at least; begin the range at {}",
                              closed->in_flight, world, world));
    closed->in_flight = static_cast<int>(part(closed->in_flight));
  } else {
    auto& open = std::get<Rate>(share.scenario);
    open.per_second /= world;
    open.most_in_flight = std::max(1, open.most_in_flight / world);
    open.share = {.every = world, .first = rank};
  }
  return share;
}

}  // namespace weir::load
