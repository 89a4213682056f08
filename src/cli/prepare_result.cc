#include "cli/prepare_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/console.h"

namespace weir::cli {
namespace {

// Of all workers together, but for the last. The network is a stage only where it was used.
std::vector<std::pair<const char*, double>> StagesOf(const prepare::PrepareSummary& summary) {
  const prepare::StageTimes& times = summary.times;
  const bool network = times.network > Duration::zero(), read = !network || times.read > Duration::zero();
  std::vector<std::pair<const char*, double>> stages;
  if (read) stages.emplace_back(summary.source_stage, Seconds(times.read));
  if (network) stages.emplace_back("network", Seconds(times.network));
  for (const auto& [name, time] : {std::pair("hash and judge", times.check),
                                   {"decode", times.decode},
                                   {"resize", times.resize},
                                   {"encode", times.encode},
                                   {"disk write", times.write}}) {
    stages.emplace_back(name, Seconds(time));
  }
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

std::string LabelText(const prepare::LabelReport& labels) {
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

Json NamesJson(const std::vector<std::string>& names) {
  Json json = Json::array();
  for (const std::string& name : names) json.push_back(EscapeBytes(name));
  return json;
}

std::string SplitsText(const prepare::PrepareSummary& summary) {
  std::string text;
  for (const auto& [name, images] : summary.splits)
    text += fmt::format("{}{} {}", text.empty() ? "  " : ", ", name, Count(images));
  return text.empty() ? text : text + "\n";
}

// "; rejected: 3 damaged, 1 empty"; empty without rejects.
std::string RejectedText(const prepare::PrepareSummary& summary) {
  std::string text;
  for (const auto& [reason, count] : summary.rejected)
    text += fmt::format("{}{} {}", text.empty() ? "; rejected: " : ", ", Count(count), reason);
  return text;
}

}  // namespace

PrepareBottleneck BottleneckOf(const prepare::PrepareSummary& summary) {
  PrepareBottleneck bottleneck;
  if (summary.wall_s <= 0 || summary.workers == 0) return bottleneck;
  const auto stages = StagesOf(summary);
  for (size_t i = 0; i < stages.size(); ++i) {
    const bool write = i + 1 == stages.size();
    const double share = stages[i].second / (summary.wall_s * (write ? 1 : summary.workers));
    if (share > bottleneck.share) bottleneck = {stages[i].first, share};
  }
  return bottleneck;
}

int64_t RejectedCount(const prepare::PrepareSummary& summary) {
  int64_t rejected = 0;
  for (const auto& [reason, count] : summary.rejected) rejected += count;
  return rejected;
}

std::string SummaryText(const prepare::PrepareSummary& summary, const std::string& folder) {
  std::string text = fmt::format("{} pictures in {}{}, {}", Count(summary.images), EscapeBytes(folder),
                                 RejectedText(summary), Size(static_cast<double>(summary.bytes_out)));
  const std::string more = SplitsText(summary) + LabelText(summary.labels);
  if (summary.was_finished) return text + "; it was finished before, and nothing is left to do\n" + more;
  if (summary.images_per_s) text += fmt::format(", {} images/s", Short(*summary.images_per_s));
  text += fmt::format(" ({:.1f} s)\n", summary.wall_s);
  text += more;
  if (summary.skipped > 0)
    text += fmt::format("  passed over: {} of the sources' entries, no pictures\n", Count(summary.skipped));
  if (summary.begun_at > 0)
    text += fmt::format("  went on behind {} that were done\n", Count(summary.begun_at));
  if (summary.made_again > 0) {
    text += fmt::format("  made again: {} that were done before; inputs before them changed\n",
                        Count(summary.made_again));
  }
  const PrepareBottleneck bottleneck = BottleneckOf(summary);
  if (bottleneck.stage.empty()) return text;
  std::string parts;
  for (const auto& [stage, seconds] : StagesOf(summary))
    parts += fmt::format("{}{} {:.2f} s", parts.empty() ? "" : ", ", stage, seconds);
  text +=
      fmt::format("  the bottleneck: {} ({:.0f} %); {} in {}: {}\n", bottleneck.stage, 100 * bottleneck.share,
                  Size(static_cast<double>(summary.bytes_in)), Count(summary.workers, "worker"), parts);
  return text;
}

Json SummaryJson(const prepare::PrepareSummary& summary, const std::string& folder) {
  Json json;
  json["folder"] = EscapeBytes(folder);
  json["format"] = ToString(summary.format);
  json["images"] = summary.images;
  json["rejected"] = Json::object();
  for (const auto& [reason, count] : summary.rejected) json["rejected"][reason] = count;
  json["skipped"] = summary.skipped;
  PutIfAny(json, "images_per_s", summary.images_per_s);
  json["wall_s"] = summary.wall_s;
  json["bytes_in"] = summary.bytes_in;
  json["bytes_out"] = summary.bytes_out;
  json["was_finished"] = summary.was_finished;
  json["begun_at"] = summary.begun_at;
  json["made_again"] = summary.made_again;
  for (const auto& [name, images] : summary.splits) json["splits"][name] = images;
  if (const prepare::LabelReport& labels = summary.labels; labels.asked_for) {
    json["labels"] = {{"labelled", labels.labelled},
                      {"unlabelled", labels.unlabelled},
                      {"unlabelled_examples", NamesJson(labels.unlabelled_examples)},
                      {"unused", labels.unused},
                      {"unused_examples", NamesJson(labels.unused_examples)}};
  }
  const PrepareBottleneck bottleneck = BottleneckOf(summary);
  if (bottleneck.stage.empty()) return json;
  json["workers"] = summary.workers;
  const prepare::StageTimes& t = summary.times;
  json["stages_s"] = {{"read", Seconds(t.read)},     {"network", Seconds(t.network)},
                      {"check", Seconds(t.check)},   {"decode", Seconds(t.decode)},
                      {"resize", Seconds(t.resize)}, {"encode", Seconds(t.encode)},
                      {"write", Seconds(t.write)}};
  json["bottleneck"] = {{"stage", bottleneck.stage}, {"share", bottleneck.share}};
  return json;
}

}  // namespace weir::cli
