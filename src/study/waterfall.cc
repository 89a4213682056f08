#include "study/waterfall.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "stats/family.h"
#include "stats/summary.h"
#include "study/combinations.h"
#include "study/factor.h"

namespace weir::study {
namespace {

constexpr const char* kRate = "throughput_images_per_s";

// A factor's level in a combination: what stands there, or what the program does without a word.
Json LevelOf(const Json& factors, const std::string& name) {
  const auto found = factors.find(name);
  if (found != factors.end()) return *found;
  for (const Factor& factor : Factors()) {
    if (factor.name == name && factor.otherwise) return *factor.otherwise;
  }
  return nullptr;
}

// Walks from the simplest combination to the target. Levels are lifted one after another, so the last
// combination is the target as the study spells it.
class Walk {
 public:
  explicit Walk(Json target) : target_(std::move(target)), now_(target_) {}

  const Json& target() const { return target_; }
  Json Wanted(const char* factor) const { return LevelOf(target_, factor); }

  void Set(const char* factor, const Json& level) {
    if (LevelOf(now_, factor) != level) now_[factor] = level;
  }
  void Lift(const char* factor) {
    const auto found = target_.find(factor);
    if (found == target_.end())
      now_.erase(factor);
    else
      now_[factor] = *found;
  }
  // Adds the combination as it stands now; none where nothing has changed.
  void Step(std::string name) {
    std::string change;
    if (!steps_.empty()) {
      for (const Factor& factor : Factors()) {
        const std::string factor_name(factor.name);
        const Json from = LevelOf(steps_.back().factors, factor_name), to = LevelOf(now_, factor_name);
        if (from == to) continue;
        std::string words = factor_name;
        std::ranges::replace(words, '_', ' ');
        change += fmt::format("{}{} {} to {}", change.empty() ? "" : ", ", words,
                              from.is_null() ? "as usual" : LevelText(factor_name, from),
                              to.is_null() ? "as usual" : LevelText(factor_name, to));
      }
      if (change.empty()) return;
    }
    steps_.push_back({.name = std::move(name), .change = std::move(change), .factors = now_});
  }
  std::vector<WaterfallCombination> Take() { return std::move(steps_); }

 private:
  Json target_, now_;
  std::vector<WaterfallCombination> steps_;
};

Json TargetOf(const StudyFile& study) {
  Json target = BaseCombination(study, *study.waterfall);
  const bool is_named = std::ranges::any_of(
      *study.waterfall, [](const FactorLevels& one) { return one.factor == "architecture"; });
  if (is_named) return target;
  for (const FactorLevels& one : study.factors) {
    if (one.factor != "architecture") continue;
    for (const char* farthest : {"distributed", "microservice", "in-process"}) {
      if (std::ranges::find(one.levels, Json(farthest)) == one.levels.end()) continue;
      target["architecture"] = farthest;
      return target;
    }
  }
  return target;
}

void WalkData(Walk& walk) {
  const Json data = walk.Wanted("data_path");
  if (data == "files") {
    walk.Set("data_path", "files-at-model-size");
    walk.Step("files");
  }
  walk.Lift("data_path");
  walk.Step(data == "files" ? "decode" : "files and decode");
}

// First with a payload that has nothing to serialise or copy, or less of it, where there is one.
void WalkServer(Walk& walk, bool is_application) {
  if (walk.Wanted("architecture") == "in-process") return;
  const bool own = walk.Wanted("server") == "weir";
  walk.Set("architecture", "microservice");
  if (walk.Wanted("payload") == "tensor") {
    if (!is_application) walk.Set("payload", "shared-memory");
    if (is_application && own) walk.Set("payload", "pixels");
  }
  walk.Step("inter-process calls");
  walk.Lift("payload");
  walk.Step("serialisation and copies");
  walk.Lift("architecture");
  walk.Step("another node");
  walk.Lift("network");
  walk.Step("network");
}

// The parts of the first combination's time by an accelerator's events, in blocks. It runs one picture at a
// time, so the parts of a picture's time are parts of the step.
struct DevicePart {
  std::string name;
  std::map<int, double> times;  // milliseconds, by block
};
std::vector<DevicePart> DeviceParts(const Measured& measured, size_t configuration,
                                    const std::vector<int>& blocks) {
  const std::map<int, double> images = measured.ByBlock(configuration, "images");
  std::vector<DevicePart> parts{
      {"computation on the device", measured.ByBlock(configuration, "stages_ms.device.computation")},
      {"the way to the device", measured.ByBlock(configuration, "stages_ms.device.host_to_device")},
      {"the way back", measured.ByBlock(configuration, "stages_ms.device.device_to_host")}};
  for (DevicePart& part : parts) {
    for (const int block : blocks) {
      if (!part.times.contains(block) || !images.contains(block) || images.at(block) <= 0) return {};
      part.times[block] /= images.at(block);
    }
  }
  return parts;
}

// Puts the parts before the first step, which keeps the rest of its time.
void SplitFirst(Waterfall& waterfall, const std::vector<DevicePart>& parts, const std::vector<int>& blocks,
                const std::map<int, double>& whole, double confidence) {
  if (parts.empty()) return;
  std::map<int, double> rest = whole;
  std::vector<WaterfallStep> steps;
  double total = 0;
  for (const DevicePart& part : parts) {
    std::vector<double> times;
    for (const int block : blocks) {
      times.push_back(part.times.at(block));
      rest.at(block) -= part.times.at(block);
    }
    WaterfallStep step{.name = part.name,
                       .change = "",
                       .configuration = waterfall.steps.front().configuration,
                       .blocks = std::ssize(blocks),
                       .step = stats::Summarise(times, confidence),
                       .by_events = true};
    step.total = total += step.step->mean;
    steps.push_back(std::move(step));
  }
  std::vector<double> left;
  for (const int block : blocks) left.push_back(rest.at(block));
  waterfall.steps.front().step = stats::Summarise(left, confidence);
  waterfall.steps.front().name += ": the host's side";
  waterfall.steps.insert(waterfall.steps.begin(), steps.begin(), steps.end());
}

}  // namespace

Result<std::vector<WaterfallCombination>> WaterfallCombinations(const StudyFile& study) {
  Walk walk(TargetOf(study));
  const Json load = walk.Wanted("load");
  if (load.is_object())
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("study {}: a waterfall wants load: application or closed; at a rate the time of a "
                    "picture is the rate's",
                    study.name));
  const bool is_application = load == "application";
  walk.Set("architecture", "in-process");
  walk.Set("network", "unshaped");
  walk.Set("mode", "sync");
  walk.Set("batch", 1);
  if (walk.Wanted("server_batching").is_object()) walk.Set("server_batching", "off");
  if (is_application) walk.Set("data_path", "memory");
  walk.Step("the model, tensors in memory, in one process");
  if (is_application) WalkData(walk);
  WalkServer(walk, is_application);
  walk.Lift("batch");
  walk.Lift("server_batching");
  walk.Step("batching");
  walk.Lift("mode");
  walk.Step("waiting and overlap");
  return walk.Take();
}

std::optional<Waterfall> FindWaterfall(const Design& design, const Measured& measured,
                                       const AnalysisOptions& options) {
  if (design.waterfall.empty()) return std::nullopt;
  Waterfall waterfall;
  std::vector<PlannedStep> planned;          // those with a trial that counts
  std::vector<std::map<int, double>> times;  // of each of them, by block
  std::string name, change;                  // of the steps without one: they go with the next
  for (const PlannedStep& one : design.waterfall) {
    std::map<int, double> by_block;
    for (const auto& [block, rate] : measured.ByBlock(one.configuration, kRate)) {
      if (rate > 0) by_block[block] = 1000 / rate;
    }
    if (!one.change.empty()) change += (change.empty() ? "" : ", ") + one.change;
    name += (name.empty() ? "" : " + ") + one.name;
    if (by_block.empty()) {
      waterfall.missing.push_back(one.name);
      continue;
    }
    planned.push_back({.name = std::exchange(name, ""),
                       .change = std::exchange(change, ""),
                       .configuration = one.configuration});
    times.push_back(std::move(by_block));
  }
  if (times.size() < 2) {
    waterfall.left_out = "fewer than two of its steps have a trial that counts";
    return waterfall;
  }
  std::vector<int> blocks;
  for (const auto& [block, time] : times[0]) {
    if (std::ranges::all_of(times, [&](const auto& one) { return one.contains(block); }))
      blocks.push_back(block);
  }
  if (blocks.empty()) {
    waterfall.left_out = "no block has a trial of every step that counts";
    return waterfall;
  }
  const size_t family = times.size();  // the differences, and the sum of them
  const double confidence = stats::SimultaneousConfidence(options.confidence, family);
  const auto differences = [&](size_t to, size_t from) {
    std::vector<double> values;
    for (const int block : blocks) values.push_back(times[to].at(block) - times[from].at(block));
    return values;
  };
  for (size_t i = 0; i < times.size(); ++i) {
    std::vector<double> whole;
    for (const int block : blocks) whole.push_back(times[i].at(block));
    WaterfallStep step{.name = planned[i].name,
                       .change = planned[i].change,
                       .configuration = planned[i].configuration,
                       .blocks = std::ssize(blocks),
                       .whole = stats::Summarise(whole, options.confidence)};
    step.total = step.whole->mean;
    step.step = step.whole;
    // Differences are tested as they are: a step may add nothing, or take time away.
    if (i > 0) {
      const std::vector<double> adds = differences(i, i - 1);
      step.step = stats::Summarise(adds, confidence);
      step.p = stats::PairedP(adds);
      step.adjusted_p = stats::SimultaneousP(step.p, family);
    }
    waterfall.steps.push_back(std::move(step));
  }
  waterfall.added = stats::Summarise(differences(times.size() - 1, 0), confidence);
  SplitFirst(waterfall, DeviceParts(measured, planned[0].configuration, blocks), blocks, times[0],
             options.confidence);
  return waterfall;
}

}  // namespace weir::study
