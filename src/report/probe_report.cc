#include "report/probe_report.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/number.h"

namespace weir::report {
namespace {

using results::StorageProbeResult;

std::string OrDash(const std::optional<double>& value) { return value ? Number(*value) : "-"; }

std::string WithInterval(const StorageProbeResult::Estimate& estimate) {
  return report::WithInterval(estimate.value, estimate.low, estimate.high);
}

std::string PhaseTitle(const std::string& phase) {
  if (phase == "etl") return "Preparation";
  if (phase == "train") return "Training";
  if (phase == "infer") return "Inference";
  if (phase == "stream") return "Streaming";
  return "All phases at once";
}

// The main figure of a phase, in words.
std::string Answer(const StorageProbeResult& phase) {
  if (phase.etl) return fmt::format("{} pictures/s prepared", OrDash(phase.etl->images_per_s));
  if (phase.train) {
    const StorageProbeResult::Fed& fed = phase.train->accelerators;
    if (!phase.train->step_ms)
      return fmt::format("{} samples/s, as fast as they come", OrDash(phase.train->samples_per_s));
    if (!fed.value) return "feeds none of the numbers of accelerators asked about";
    const auto& hosts = phase.train->hosts;
    return fmt::format("feeds {} accelerators of {}{} ({} in every repeat, {} in the best)", *fed.value,
                       phase.train->profile,
                       hosts.empty() ? "" : fmt::format(" on each of {} hosts", hosts.size()),
                       fed.low.value_or(0), fed.high.value_or(0));
  }
  if (phase.infer)
    return fmt::format("{} % of {} frames in time", OrDash(phase.infer->frames.in_time_percent),
                       phase.infer->frames.planned);
  if (phase.stream) return fmt::format("{} bytes/s in large reads", OrDash(phase.stream->bytes_per_s));
  if (phase.mix)
    return fmt::format("training keeps {} of its throughput beside inference and streaming",
                       OrDash(phase.mix->together_over_alone.train_samples_per_s));
  return "-";
}

std::string Rate(const StorageProbeResult& phase) {
  if (phase.etl) return OrDash(phase.etl->images_per_s);
  if (phase.train) return OrDash(phase.train->samples_per_s);
  if (phase.infer) return Number(phase.infer->streams * phase.infer->frames_per_s);
  return "-";
}

std::string BytesRate(const StorageProbeResult& phase) {
  if (phase.etl) return OrDash(phase.etl->bytes_in_per_s);
  if (phase.train) return OrDash(phase.train->bytes_per_s);
  if (phase.stream) return OrDash(phase.stream->bytes_per_s);
  return "-";
}

std::string BottleneckOf(const StorageProbeResult& phase) {
  const auto text = [](const StorageProbeResult::Bottleneck& bottleneck) {
    return bottleneck.share ? fmt::format("{} ({})", bottleneck.stage, Percent(*bottleneck.share))
                            : bottleneck.stage;
  };
  if (phase.etl) return text(phase.etl->bottleneck);
  if (phase.train) return text(phase.train->bottleneck);
  if (phase.infer) return text(phase.infer->bottleneck);
  return "-";
}

// A row for each figure, a column for each phase.
Table SideBySide(const std::vector<const StorageProbeResult*>& phases) {
  Table table{.caption = "The phases side by side", .columns = {"figure"}, .text_columns = 1};
  for (const StorageProbeResult* phase : phases) table.columns.push_back(PhaseTitle(phase->phase));
  const auto row = [&](const std::string& name, const auto& value) {
    std::vector<std::string> cells{name};
    for (const StorageProbeResult* phase : phases) cells.push_back(value(*phase));
    table.rows.push_back(std::move(cells));
  };
  row("samples/s", Rate);
  row("bytes/s read", BytesRate);
  row("bottleneck", BottleneckOf);
  const std::pair<const char*, results::Percentiles StorageProbeResult::Reads::*> times[] = {
      {"open", &StorageProbeResult::Reads::open_us},
      {"read", &StorageProbeResult::Reads::read_us},
      {"close", &StorageProbeResult::Reads::close_us}};
  for (const auto& [name, member] : times) {
    row(fmt::format("{}, median, us", name),
        [member = member](const auto& phase) { return OrDash((phase.reads.*member).p50); });
    row(fmt::format("{}, 99 %, us", name),
        [member = member](const auto& phase) { return OrDash((phase.reads.*member).p99); });
    row(fmt::format("{}, longest, us", name),
        [member = member](const auto& phase) { return OrDash((phase.reads.*member).max); });
  }
  row("in the page cache before", [](const auto& phase) {
    return phase.reads.cached_share ? Percent(*phase.reads.cached_share) : std::string("-");
  });
  row("reads that failed", [](const auto& phase) { return Number(static_cast<double>(phase.reads.errors)); });
  row("verdict", [](const auto& phase) { return phase.verdict.verdict; });
  return table;
}

Chart TimesChart(const std::vector<const StorageProbeResult*>& phases) {
  Chart chart{.kind = Chart::Kind::kBars,
              .title = "Time of one read",
              .y_label = "time of a read",
              .y_unit = "us",
              .series = {},
              .note = "Without the time to open and close a file."};
  for (const StorageProbeResult* phase : phases) {
    Series series{.name = PhaseTitle(phase->phase), .points = {}};
    if (phase->reads.read_us.p50)
      series.points.push_back({.name = "median", .value = *phase->reads.read_us.p50});
    if (phase->reads.read_us.p99)
      series.points.push_back({.name = "99 %", .value = *phase->reads.read_us.p99});
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

Section AnswerSection(const StorageProbeResult& result,
                      const std::vector<const StorageProbeResult*>& phases) {
  Section section{.title = "What does the storage feed?", .blocks = {}};
  for (const StorageProbeResult* phase : phases)
    section.blocks.emplace_back(Paragraph{
        fmt::format("{}: {}.", PhaseTitle(phase->phase), Answer(*phase)),
        phase->verdict.verdict == "INVALID" ? Paragraph::Tone::kFailure : Paragraph::Tone::kAnswer});
  for (const results::ProbeVerdict::Cause& cause : result.verdict.reasons)
    section.blocks.emplace_back(Paragraph{
        fmt::format("{}: {}", cause.reason, cause.evidence),
        result.verdict.verdict == "INVALID" ? Paragraph::Tone::kFailure : Paragraph::Tone::kWarning});
  section.blocks.emplace_back(SideBySide(phases));
  if (Chart chart = TimesChart(phases); !chart.series.empty()) section.blocks.emplace_back(std::move(chart));
  return section;
}

Table StallTable(const StorageProbeResult::Train& train) {
  Table table{.caption = "Stages that the accelerators waited for, over the steps that waited",
              .columns = {"stage", "seconds in all", "median us", "99 % us", "longest us"},
              .text_columns = 1};
  const auto add = [&](const char* name, double seconds, const results::Percentiles& us) {
    table.rows.push_back({name, Number(seconds), OrDash(us.p50), OrDash(us.p99), OrDash(us.max)});
  };
  add("queue", train.stall_s.queue, train.stall_us.queue);
  add("open", train.stall_s.open, train.stall_us.open);
  add("read", train.stall_s.read, train.stall_us.read);
  add("close", train.stall_s.close, train.stall_us.close);
  add("decode", train.stall_s.decode, train.stall_us.decode);
  add("augment", train.stall_s.augment, train.stall_us.augment);
  add("hosts", train.stall_s.hosts, train.stall_us.hosts);
  return table;
}

Table RunsTable(const StorageProbeResult::Train& train) {
  Table table{.caption = "Runs, in their order",
              .columns = {"accelerators", "utilisation %", "samples/s", "steps", "bytes asked for",
                          "bytes from devices", "bytes from the mount", "cached before, by epoch"},
              .text_columns = 0};
  for (const StorageProbeResult::TrainRun& run : train.runs) {
    std::string cached;
    for (const double share : run.cached_share_by_epoch)
      cached += (cached.empty() ? "" : ", ") + Percent(share);
    table.rows.push_back({Number(run.accelerators), OrDash(run.utilisation_percent),
                          OrDash(run.samples_per_s), Number(static_cast<double>(run.steps)),
                          Number(static_cast<double>(run.bytes_asked)), OrDash(run.machine.bytes_from_device),
                          OrDash(run.machine.bytes_from_mount), cached.empty() ? "-" : cached});
  }
  return table;
}

void AddUnits(const StorageProbeResult::Train& train, Section& section) {
  if (train.units.empty()) return;
  Table table{.caption = "Gain of each storage unit",
              .columns = {"unit", "samples/s with it", "part of its equal share"},
              .text_columns = 1};
  for (const StorageProbeResult::Unit& unit : train.units)
    table.rows.push_back(
        {unit.path, WithInterval(unit.samples_per_s), unit.share ? WithInterval(*unit.share) : "-"});
  section.blocks.emplace_back(std::move(table));
}

void AddHosts(const StorageProbeResult::Train& train, Section& section) {
  if (train.hosts.empty()) return;
  Table table{.caption = "Hosts that read one order together",
              .columns = {"host", "utilisation %", "samples/s", "ended after s", "barrier median us",
                          "samples/s with those before", "part of its equal share", "lost"},
              .text_columns = 1};
  for (const StorageProbeResult::Host& host : train.hosts) {
    const auto& with = host.samples_per_s_with_those_before;
    table.rows.push_back({host.name, OrDash(host.utilisation_percent), OrDash(host.samples_per_s),
                          OrDash(host.ended_s), OrDash(host.barrier_us.p50), with ? WithInterval(*with) : "-",
                          host.share ? WithInterval(*host.share) : "-", host.lost.value_or("-")});
  }
  section.blocks.emplace_back(std::move(table));
}

void AddLatency(const StorageProbeResult::Train& train, Section& section) {
  if (!train.latency) return;
  const StorageProbeResult::Latency& latency = *train.latency;
  section.blocks.emplace_back(
      Paragraph{latency.reads_in_flight_enough
                    ? fmt::format("{} us more do not matter from {} reads in flight on.",
                                  Number(latency.added_us), *latency.reads_in_flight_enough)
                    : fmt::format("{} us more matter at every number of reads in flight that was tried.",
                                  Number(latency.added_us)),
                Paragraph::Tone::kAnswer});
  Chart chart{.kind = Chart::Kind::kLines,
              .title = "Throughput kept with the added latency",
              .x_label = "reads in flight",
              .y_label = "throughput kept",
              .series = {{.name = "kept", .points = {}}},
              .note = "Error bars are 95 % intervals over the repeats."};
  for (const StorageProbeResult::LatencyLevel& level : latency.levels)
    chart.series[0].points.push_back({.x = level.reads_in_flight,
                                      .value = level.kept.value,
                                      .low = level.kept.low,
                                      .high = level.kept.high});
  section.blocks.emplace_back(std::move(chart));
}

std::optional<Section> PhaseSection(const StorageProbeResult& phase) {
  Section section{.title = PhaseTitle(phase.phase), .blocks = {}};
  if (phase.train) {
    AddUnits(*phase.train, section);
    AddHosts(*phase.train, section);
    AddLatency(*phase.train, section);
    section.blocks.emplace_back(StallTable(*phase.train));
    section.blocks.emplace_back(RunsTable(*phase.train));
    if (phase.train->ceiling_samples_per_s)
      section.blocks.emplace_back(Paragraph{fmt::format("This program itself takes {} samples/s from memory.",
                                                        Number(*phase.train->ceiling_samples_per_s))});
  }
  if (phase.etl) {
    const StorageProbeResult::EtlSeconds& s = phase.etl->stages_s;
    Table table{.caption = "Time of the threads by stage", .columns = {"stage", "seconds"}};
    for (const auto& [name, seconds] :
         {std::pair{"read", s.read}, std::pair{"decode", s.decode}, std::pair{"resize", s.resize},
          std::pair{"encode", s.encode}, std::pair{"write", s.write}})
      table.rows.push_back({name, Number(seconds)});
    section.blocks.emplace_back(std::move(table));
  }
  if (phase.infer) {
    const StorageProbeResult::Frames& frames = phase.infer->frames;
    Table table{
        .caption = "Time of a frame, us",
        .columns = {"from", "median", "99 %", "99.9 %", "longest"},
        .rows = {{"its planned time", OrDash(frames.response_us.p50), OrDash(frames.response_us.p99),
                  OrDash(frames.response_us.p99_9), OrDash(frames.response_us.max)},
                 {"the begin of its read", OrDash(frames.service_us.p50), OrDash(frames.service_us.p99),
                  OrDash(frames.service_us.p99_9), OrDash(frames.service_us.max)}}};
    section.blocks.emplace_back(std::move(table));
  }
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace

Document ProbeDocument(const StorageProbeResult& result) {
  std::vector<const StorageProbeResult*> phases;
  for (const StorageProbeResult& phase : result.phases) phases.push_back(&phase);
  if (phases.empty()) phases.push_back(&result);
  Document document{.title = "Storage probe",
                    .subtitle = fmt::format("verdict {}; {} samples, {} bytes", result.verdict.verdict,
                                            result.set.samples, result.set.bytes),
                    .sections = {AnswerSection(result, phases)}};
  for (const StorageProbeResult* phase : phases)
    if (auto section = PhaseSection(*phase)) document.sections.push_back(*std::move(section));
  if (const auto command = result.provenance.find("command");
      command != result.provenance.end() && command->is_string())
    document.sections.push_back(
        {.title = "Repeat it",
         .blocks = {Paragraph{command->get<std::string>(), Paragraph::Tone::kCommand}}});
  return document;
}

}  // namespace weir::report
