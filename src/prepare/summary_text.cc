#include "prepare/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/count.h"
#include "base/json.h"

namespace weir::prepare {
namespace {

// The network is a stage only where it was used.
std::vector<results::StageTime> StagesOf(const PrepareSummary& summary) {
  const StageTimes& times = summary.times;
  const bool network = times.network > Duration::zero(), read = !network || times.read > Duration::zero();
  std::vector<results::StageTime> stages;
  const auto add = [&](const char* name, Duration time, int threads) {
    stages.push_back({.name = name, .seconds = Seconds(time), .threads = threads});
  };
  if (read) add(summary.source_stage, times.read, summary.workers);
  if (network) add("network", times.network, summary.workers);
  add("hash and judge", times.check, summary.workers);
  add("decode", times.decode, summary.workers);
  add("resize", times.resize, summary.workers);
  add("encode", times.encode, summary.workers);
  add("disk write", times.write, summary.workers > 0 ? 1 : 0);
  return stages;
}

// A name of another's on one line of a terminal.
std::string Shown(std::string_view name) {
  std::string shown;
  for (const char c : EscapeForTerminal(name)) {
    if (c == '\n' || c == '\t') {
      shown += c == '\n' ? "\\n" : "\\t";
    } else {
      shown += c;
    }
  }
  return shown;
}

// "3 (a.jpg, b.jpg, ...)".
std::string CountWithNames(int64_t count, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + Shown(name);
  if (count > std::ssize(names)) text += ", ...";
  return fmt::format("{} ({})", Count(count), text);
}

std::string LabelText(const LabelReport& labels) {
  std::string text;
  if (labels.asked_for && labels.unlabelled > 0) {
    text += fmt::format("  pictures without a label: {}\n",
                        CountWithNames(labels.unlabelled, labels.unlabelled_examples));
  }
  if (labels.unused > 0) {
    text += fmt::format("  labels that match no picture: {}\n",
                        CountWithNames(labels.unused, labels.unused_examples));
  }
  return text;
}

std::vector<std::string> Escaped(const std::vector<std::string>& names) {
  std::vector<std::string> escaped;
  for (const std::string& name : names) escaped.push_back(EscapeBytes(name));
  return escaped;
}

std::string SplitsText(const PrepareSummary& summary) {
  std::string text;
  for (const auto& [name, images] : summary.splits)
    text += fmt::format("{}{} {}", text.empty() ? "  " : ", ", name, Count(images));
  return text.empty() ? text : text + "\n";
}

// "; rejected: 3 damaged, 1 empty"; empty without rejects.
std::string RejectedText(const PrepareSummary& summary) {
  std::string text;
  for (const auto& [reason, count] : summary.rejected)
    text += fmt::format("{}{} {}", text.empty() ? "; rejected: " : ", ", Count(count), reason);
  return text;
}

}  // namespace

int64_t RejectedCount(const PrepareSummary& summary) {
  int64_t rejected = 0;
  for (const auto& [reason, count] : summary.rejected) rejected += count;
  return rejected;
}

std::string SummaryText(const PrepareSummary& summary, const std::string& folder) {
  std::string text = fmt::format("{} pictures in {}{}, {}", Count(summary.images), EscapeBytes(folder),
                                 RejectedText(summary), Size(static_cast<double>(summary.bytes_out)));
  const std::string more = SplitsText(summary) + LabelText(summary.labels);
  if (summary.was_finished) return text + "; it was finished before, and nothing is left to do\n" + more;
  if (summary.images_per_s) text += fmt::format(", {} images/s", Short(*summary.images_per_s));
  text += fmt::format(" ({:.1f} s)\n", summary.wall_s);
  text += more;
  if (summary.skipped > 0)
    text += fmt::format("  not taken: {} of the sources' entries; rejects.jsonl names them\n",
                        Count(summary.skipped));
  if (summary.begun_at > 0)
    text += fmt::format("  went on behind {} that were done\n", Count(summary.begun_at));
  if (summary.made_again > 0) {
    text += fmt::format("  made again: {} that were done before; inputs before them changed\n",
                        Count(summary.made_again));
  }
  const auto bottleneck = results::FindBottleneck(StagesOf(summary), summary.wall_s);
  if (!bottleneck) return text;
  std::string parts;
  for (const auto& [stage, seconds, threads] : StagesOf(summary))
    parts += fmt::format("{}{} {:.2f} s", parts.empty() ? "" : ", ", stage, seconds);
  text += fmt::format("  the bottleneck: {} ({:.0f} %); {} in {}: {}\n", bottleneck->stage,
                      100 * bottleneck->share, Size(static_cast<double>(summary.bytes_in)),
                      Count(summary.workers, "worker"), parts);
  return text;
}

results::PrepareResult MakeResult(const PrepareSummary& summary, const std::string& folder) {
  results::PrepareResult result{.folder = EscapeBytes(folder),
                                .format = std::string(ToString(summary.format)),
                                .images = summary.images,
                                .rejected = summary.rejected,
                                .skipped = summary.skipped,
                                .images_per_s = summary.images_per_s,
                                .wall_s = summary.wall_s,
                                .bytes_in = summary.bytes_in,
                                .bytes_out = summary.bytes_out,
                                .was_finished = summary.was_finished,
                                .begun_at = summary.begun_at,
                                .made_again = summary.made_again};
  for (const auto& [name, images] : summary.splits) result.splits[name] = images;
  if (const LabelReport& labels = summary.labels; labels.asked_for) {
    result.labels = {.labelled = labels.labelled,
                     .unlabelled = labels.unlabelled,
                     .unlabelled_examples = Escaped(labels.unlabelled_examples),
                     .unused = labels.unused,
                     .unused_examples = Escaped(labels.unused_examples)};
  }
  result.bottleneck = results::FindBottleneck(StagesOf(summary), summary.wall_s);
  if (!result.bottleneck) return result;
  result.workers = summary.workers;
  const StageTimes& t = summary.times;
  result.stages_s = {.read = Seconds(t.read),
                     .network = Seconds(t.network),
                     .check = Seconds(t.check),
                     .decode = Seconds(t.decode),
                     .resize = Seconds(t.resize),
                     .encode = Seconds(t.encode),
                     .write = Seconds(t.write)};
  return result;
}

}  // namespace weir::prepare
