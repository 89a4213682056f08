#include "cli/prepare_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/console.h"

namespace weir::cli {
namespace {

// Of all workers together, but for the last.
std::vector<std::pair<const char*, double>> StagesOf(const prepare::PrepareSummary& summary) {
  const prepare::StageTimes& times = summary.times;
  return {{summary.source_stage, Seconds(times.read)}, {"hash and judge", Seconds(times.check)},
          {"decode", Seconds(times.decode)},           {"resize", Seconds(times.resize)},
          {"encode", Seconds(times.encode)},           {"disk write", Seconds(times.write)}};
}

// "; rejected: 3 damaged, 1 empty"; empty without rejects.
std::string RejectedText(const prepare::PrepareSummary& summary) {
  std::string text;
  for (const auto& [reason, count] : summary.rejected)
    text += fmt::format("{}{} {}", text.empty() ? "; rejected: " : ", ", Count(count), reason);
  return text;
}

}  // namespace

PrepareWall WallOf(const prepare::PrepareSummary& summary) {
  PrepareWall wall;
  if (summary.wall_s <= 0 || summary.workers == 0) return wall;
  const auto stages = StagesOf(summary);
  for (size_t i = 0; i < stages.size(); ++i) {
    const bool write = i + 1 == stages.size();
    const double share = stages[i].second / (summary.wall_s * (write ? 1 : summary.workers));
    if (share > wall.share) wall = {stages[i].first, share};
  }
  return wall;
}

int64_t RejectedCount(const prepare::PrepareSummary& summary) {
  int64_t rejected = 0;
  for (const auto& [reason, count] : summary.rejected) rejected += count;
  return rejected;
}

std::string SummaryText(const prepare::PrepareSummary& summary, const std::string& folder) {
  std::string text = fmt::format("{} pictures in {}{}, {}", Count(summary.images), EscapeBytes(folder),
                                 RejectedText(summary), Size(static_cast<double>(summary.bytes_out)));
  if (summary.was_finished) return text + "; it was finished before, and nothing is left to do\n";
  if (summary.images_per_s) text += fmt::format(", {} images/s", Short(*summary.images_per_s));
  text += fmt::format(" ({:.1f} s)\n", summary.wall_s);
  if (summary.skipped > 0)
    text += fmt::format("  passed over: {} of the sources' entries, no pictures\n", Count(summary.skipped));
  if (summary.begun_at > 0)
    text += fmt::format("  went on behind {} that were done\n", Count(summary.begun_at));
  const PrepareWall wall = WallOf(summary);
  if (wall.stage.empty()) return text;
  std::string parts;
  for (const auto& [stage, seconds] : StagesOf(summary))
    parts += fmt::format("{}{} {:.2f} s", parts.empty() ? "" : ", ", stage, seconds);
  text += fmt::format("  the wall: {} ({:.0f} %); {} in {}: {}\n", wall.stage, 100 * wall.share,
                      Size(static_cast<double>(summary.bytes_in)), Count(summary.workers, "worker"), parts);
  return text;
}

Json SummaryJson(const prepare::PrepareSummary& summary, const std::string& folder) {
  Json json;
  json["folder"] = EscapeBytes(folder);
  json["format"] = data::ToString(summary.format);
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
  const PrepareWall wall = WallOf(summary);
  if (wall.stage.empty()) return json;
  json["workers"] = summary.workers;
  const prepare::StageTimes& t = summary.times;
  json["stages_s"] = {{"read", Seconds(t.read)},     {"check", Seconds(t.check)},
                      {"decode", Seconds(t.decode)}, {"resize", Seconds(t.resize)},
                      {"encode", Seconds(t.encode)}, {"write", Seconds(t.write)}};
  json["wall"] = {{"stage", wall.stage}, {"share", wall.share}};
  return json;
}

}  // namespace weir::cli
