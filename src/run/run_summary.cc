#include "run/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/count.h"
#include "base/json.h"
#include "results/thresholds.h"

namespace weir::run {
namespace {

namespace threshold = results::threshold;

// Returns the reasons to doubt the times of this run; each says how to remove it.
std::vector<std::string> Warnings(const RunSummary& o) {
  std::vector<std::string> warnings;
  const monitor::Resources& r = o.resources;
  if (r.server_cpu && r.recogniser_cpu && r.app_cpu) {
    const double others = o.report.costs.foreign_cpu_s / std::max(o.report.costs.wall_s, 1e-9);
    if (r.wall_s > threshold::kShortestForForeign &&
        others > threshold::kForeignShare * o.report.costs.cores) {
      warnings.push_back(
          fmt::format("other processes took {:.2f} of the machine's cores: throughput and times are theirs "
                      "too; trust the CPU time an image, or "
                      "run on a quiet machine",
                      others));
    }
  }
  if (r.steal_percent && *r.steal_percent > threshold::kStealPercent) {
    warnings.push_back(
        fmt::format("the hypervisor took {:.1f} % of the CPU time: repeat, and trust the CPU time an image",
                    *r.steal_percent));
  }
  if (r.throttled_s && *r.throttled_s > threshold::kThrottledShare * r.wall_s) {
    warnings.push_back(fmt::format(
        "the control group's CPU quota held the run back for {:.2f} s: raise it, or give fewer threads",
        *r.throttled_s));
  }
  if (o.backend.invents_answers()) {
    warnings.push_back(
        "the engine is emulated: its answers are made from the input's bytes and mean nothing");
  }
  if (o.report.batches > 0 && o.report.batches < threshold::kFewestBatches) {
    warnings.push_back(fmt::format("{} batches are few for a rate: {} or more (--repeat-data) steady it",
                                   o.report.batches, threshold::kFewestBatches));
  }
  return warnings;
}

bool HasAccuracy(const RunSummary& o) {
  return o.report.labelled > 0 && o.labels && !o.backend.invents_answers();
}

std::optional<results::RunResult::DeviceTimes> DeviceTimesOf(const StageTimes& stages) {
  if (!stages.device) return std::nullopt;
  return results::RunResult::DeviceTimes{.host_to_device = Milliseconds(stages.device->upload),
                                         .compute = Milliseconds(stages.device->compute),
                                         .device_to_host = Milliseconds(stages.device->download)};
}

results::RunResult::Stages StagesOf(const RunSummary& o) {
  const StageTimes& s = o.report.stages;
  return {.model_prepare = 1e3 * o.backend.prepare_s(),
          .warm_up = 1e3 * o.report.warm_up_s,
          .load_prepare = Milliseconds(s.load_prepare),
          .wait = Milliseconds(s.wait),
          .send = Milliseconds(s.send),
          .infer = Milliseconds(s.infer),
          .result_load = Milliseconds(s.result_load),
          .print = Milliseconds(s.print),
          .total = Milliseconds(s.total),
          .device = DeviceTimesOf(s)};
}

// Texts that are empty are absent.
results::RunResult::Engine EngineOf(const BackendDescription& backend) {
  const auto text = [](const std::string& given) {
    return given.empty() ? std::nullopt : std::optional(EscapeBytes(given));
  };
  results::RunResult::Engine engine{.server = text(backend.server),
                                    .payload = text(backend.payload),
                                    .platform = text(backend.platform),
                                    .engine = text(backend.engine),
                                    .engine_version = text(backend.engine_version),
                                    .precision = text(backend.precision),
                                    .threads = backend.threads,
                                    .streams = backend.streams,
                                    .not_batchable = text(backend.not_batchable)};
  if (!backend.times) return engine;
  engine.server_ms = {.queue = backend.times->queue_ms,
                      .compute_input = backend.times->compute_input_ms,
                      .compute_infer = backend.times->compute_infer_ms,
                      .compute_output = backend.times->compute_output_ms};
  engine.server_requests = backend.times->requests;
  engine.server_mean_batch = backend.times->rows_per_batch;
  return engine;
}

// The server's own account of the run; empty where there is none.
std::string ServerLine(const BackendDescription& backend, const Report& report) {
  if (!backend.times) return "";
  const infer::MeanServerTimes& t = *backend.times;
  std::string line = fmt::format("queue {}, input {}, infer {}, output {} ms a request, in batches of {}",
                                 Short(t.queue_ms), Short(t.compute_input_ms), Short(t.compute_infer_ms),
                                 Short(t.compute_output_ms), Short(t.rows_per_batch));
  if (report.batches > 0) {
    line += fmt::format("; the round trip takes {} ms",
                        Short(1e3 * report.costs.round_trip_s / static_cast<double>(report.batches)));
  }
  return line;
}

std::string RangeText(const std::optional<monitor::Range>& range, const char* unit, double scale) {
  if (!range) return "-";
  return fmt::format("{} {}  ({} to {})", Short(range->mean * scale), unit, Short(range->min * scale),
                     Short(range->max * scale));
}

std::string StageLines(const TextStyle& style, const RunSummary& o) {
  const StageTimes& s = o.report.stages;
  const double pictures = std::max<double>(1, static_cast<double>(s.pictures));
  const double total = std::max(1e-9, Milliseconds(s.total));
  std::string text = style.Bold("\nstages") +
                     "     ms a picture, waiting included; a batch's time counts for each of its pictures\n";
  std::vector<std::pair<const char*, Duration>> rows{
      {"load, prepare", s.load_prepare}, {"wait", s.wait}, {"send", s.send}, {"infer", s.infer}};
  if (s.device) {
    rows.insert(rows.end(), {{"  to device", s.device->upload},
                             {"  compute", s.device->compute},
                             {"  from device", s.device->download}});
  }
  rows.insert(rows.end(), {{"load result", s.result_load}, {"print", s.print}});
  for (const auto& [name, time] : rows) {
    text += fmt::format("  {:<14}{:>9.3f}  {}{:>4.0f} %\n", name, Milliseconds(time) / pictures,
                        TextStyle::Bar(Milliseconds(time) / total, 30), 100 * Milliseconds(time) / total);
  }
  return text + fmt::format("  {:<14}{:>9.3f}\n", "total", Milliseconds(s.total) / pictures);
}

std::string ResourceLines(const TextStyle& style, const RunSummary& o) {
  const monitor::Resources& r = o.resources;
  std::string text =
      style.Bold("\nresources") +
      fmt::format("  mean (min to max) over {} samples of {:.0f} ms\n", r.samples, r.period_ms);
  if (o.report.images > 0) {
    const Costs& c = o.report.costs;
    const auto ms = [&](double seconds) { return Short(1e3 * seconds / c.images); };
    text += fmt::format("  CPU, an image      {} ms: load {}{}, other {}\n",
                        ms(c.load_cpu_s + c.engine_cpu_s + c.other_cpu_s), ms(c.load_cpu_s),
                        c.remote ? "" : ", infer " + ms(c.engine_cpu_s), ms(c.other_cpu_s));
  }
  if (r.recogniser_cpu)
    text += fmt::format("  CPU, engine        {}\n", RangeText(r.recogniser_cpu, "cores", 1));
  text += fmt::format("  CPU, application   {}\n", RangeText(r.app_cpu, "cores", 1));
  text += fmt::format("  CPU, machine       {}\n", RangeText(r.client_cpu, "cores", 1));
  if (r.gpu_percent)
    text += fmt::format("  GPU ({})     {}\n", r.gpu_label, RangeText(r.gpu_percent, "%", 1));
  text += fmt::format("  memory, resident   {}\n", RangeText(r.process_memory_bytes, "MB", 1e-6));
  return text;
}

}  // namespace

Result<results::RunResult> MakeResult(const RunSummary& o, const record::Provenance& provenance) {
  const Report& r = o.report;
  results::RunResult result{.model = EscapeBytes(o.backend.name()),
                            .engine = EngineOf(o.backend.Describe()),
                            .batch = o.options.batch,
                            .mode = o.mode,
                            .in_flight = r.costs.in_flight,
                            .decode_threads = o.options.decode_threads,
                            .no_files = o.options.no_files,
                            .repeat_data = o.options.repeat_data,
                            .images = r.images,
                            .rejected = r.rejected.total,
                            .rejected_by_reason = r.rejected.by_reason,
                            .skipped = std::ssize(o.listing.skipped),
                            .interrupted = r.stopped,
                            .throughput_images_per_s = r.Throughput(),
                            .wall_s = r.wall_s,
                            .load_before_s = r.load_before_s,
                            .stages_ms = StagesOf(o),
                            .resources = o.resources,
                            .server_resources = o.server_resources,
                            .servers = o.backend.Describe().servers,
                            .bounds = o.bounds,
                            .bottleneck = o.bottleneck,
                            .costs = r.costs,
                            .warnings = Warnings(o),
                            .provenance = provenance.ToJson(),
                            .command = o.command};
  if (r.images > 0) {
    const Costs& c = r.costs;
    result.cpu_ms_per_image = {.load_prepare = 1e3 * c.load_cpu_s / c.images,
                               .other = 1e3 * c.other_cpu_s / c.images};
    if (!c.remote) result.cpu_ms_per_image->infer = 1e3 * c.engine_cpu_s / c.images;
  }
  if (HasAccuracy(o)) {
    const auto labelled = static_cast<double>(r.labelled);
    result.accuracy = {.top1 = static_cast<double>(r.top1_hits) / labelled,
                       .top5 = static_cast<double>(r.top5_hits) / labelled,
                       .labelled = r.labelled};
  }
  if (!o.labels) result.accuracy_left_out = o.labels.error().message;
  return result;
}

std::string SummaryText(const TextStyle& style, const RunSummary& o) {
  const Report& r = o.report;
  std::string text;
  if (o.backend.invents_answers() && !o.shown.empty())
    text += "(emulated: these answers are made from bytes and mean nothing)\n";
  for (const std::string& line : o.shown) text += line + "\n";
  if (!o.shown.empty()) {
    if (r.images > std::ssize(o.shown))
      text += fmt::format("... and {} more; --answers FILE.csv keeps them all\n",
                          Count(r.images - std::ssize(o.shown)));
    text += "\n";
  }
  text += fmt::format("{}  {}, batch {}{}, {}", style.Bold(EscapeBytes(o.backend.name())), o.backend.Title(),
                      o.options.batch, o.backend.target().fixed_batch ? " (fixed by the model)" : "", o.mode);
  if (o.options.mode == Mode::kAsync) text += fmt::format(" with {} in flight", o.options.in_flight);
  if (!o.options.no_files) text += ", " + Count(o.options.decode_threads, "decode thread");
  text += fmt::format("\n{} answered, {} rejected, {} skipped{}\n", Count(r.images, "picture"),
                      Count(r.rejected.total), Count(std::ssize(o.listing.skipped), "file"),
                      r.stopped ? "; broken off" : "");
  for (const auto& [name, reject] : r.rejected.first) {
    text += fmt::format("  rejected {}: {}{}{}\n", EscapeBytes(name), ToString(reject.reason),
                        reject.detail.empty() ? "" : ": ", EscapeBytes(reject.detail));
  }
  if (r.rejected.total > std::ssize(r.rejected.first)) text += "  ...\n";
  if (HasAccuracy(o)) {
    text += fmt::format("{}   top-1 {:.1f} %, top-5 {:.1f} %, of {}\n", style.Bold("accuracy"),
                        100.0 * static_cast<double>(r.top1_hits) / static_cast<double>(r.labelled),
                        100.0 * static_cast<double>(r.top5_hits) / static_cast<double>(r.labelled),
                        r.labelled == r.images ? Count(r.labelled, "picture")
                                               : fmt::format("the {} of {} that have labels",
                                                             Count(r.labelled), Count(r.images, "picture")));
  }
  if (!o.labels) text += fmt::format("{}   left out: {}\n", style.Bold("accuracy"), o.labels.error().message);
  if (const auto throughput = r.Throughput()) {
    text += fmt::format(
        "{} {} images/s in {:.2f} s; before that {} took {:.2f} s, the warm-up batch {:.2f} s{}\n",
        style.Bold("throughput"), Short(*throughput), r.wall_s,
        r.costs.remote ? "asking the server" : "the model", o.backend.prepare_s(), r.warm_up_s,
        r.load_before_s > 0 ? fmt::format(", loading {:.2f} s", r.load_before_s) : "");
    text += StageLines(style, o);
    if (const auto shares = o.backend.Describe().servers) text += ServerSharesText(*shares);
    if (const std::string line = ServerLine(o.backend.Describe(), r); !line.empty())
      text += fmt::format("{}     {}\n", style.Bold("server"), line);
    text += ResourceLines(style, o);
    std::string parts;
    const auto part = [&](const char* name, const std::optional<double>& bound) {
      if (bound) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, Short(*bound));
    };
    part("read", o.bounds.read);
    part("decode", o.bounds.decode);
    part("infer", o.bounds.infer);
    part("server, by its own account", o.bounds.server);
    part("all on these cores", o.bounds.cpu);
    if (r.costs.remote && !o.bounds.server) parts += ", server unknown";
    text += fmt::format("\n{}     images/s each part alone could do: {}; together at most {}\n",
                        style.Bold("bounds"), parts, Short(o.bounds.pipeline));
  }
  if (o.bottleneck) text += fmt::format("{}       {}\n", style.Bold("bottleneck"), o.bottleneck->text);
  for (const std::string& warning : Warnings(o))
    text += fmt::format("{}    {}\n", style.Bold("warning"), warning);
  text += fmt::format("repeat     {}\n", o.command);
  return text;
}

}  // namespace weir::run
