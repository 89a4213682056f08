#include "advise/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/count.h"
#include "base/seed.h"
#include "base/shuffle.h"
#include "study/measured.h"
#include "study/next_bottleneck.h"

namespace weir::advise {
namespace {

using Hardware = results::AdviceResult::Hardware;

constexpr double kFedShare = 0.9;
constexpr int kLeastBlocks = 4, kMostBlocks = 12;
constexpr const char* kAccelerator = "accelerator";

bool IsEngine(const study::FactorLevels& one) { return one.factor == "engine" || one.factor == kAccelerator; }

// The study with one accelerator in the place of its engines.
study::StudyFile WithAccelerator(study::StudyFile file, const std::string& engine) {
  for (study::LevelLists* lists : {&file.factors, &file.fixed, &file.base, &file.reference})
    std::erase_if(*lists, IsEngine);
  file.also.clear();
  file.waterfall.reset();
  file.figures.clear();
  file.fixed.push_back({.factor = kAccelerator, .levels = {engine}});
  return file;
}

Status CheckPlaces(const study::Design& design) {
  for (const study::Configuration& one : design.configurations) {
    if (one.factors.contains(kAccelerator)) continue;
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: has no place for a predicted accelerator: leave other servers out of the study",
                    one.label));
  }
  return {};
}

// Returns the index of the configuration that an accelerator is played with.
Result<std::optional<size_t>> BestOf(const HardwareInputs& inputs, const study::StudyFile& file,
                                     const study::Design& design, HardwareRun& run) {
  if (design.configurations.size() == 1) return std::optional<size_t>(0);
  const SearchRun search = TRY(RunSearch(
      {.design = design,
       .goal = run.goal,
       .play = inputs.player(file, design),
       .trials = inputs.trials,
       .progress = inputs.progress,
       .stop = inputs.stop,
       .options = {.most_trials = std::ssize(design.configurations) * std::max(kLeastBlocks, file.repeats),
                   .seed = file.seed}}));
  run.search_trials += std::ssize(search.exploration) + std::ssize(search.confirmation);
  run.full_factorial_trials += std::ssize(design.trials);
  if (!search.answer) return std::optional<size_t>();
  return std::optional(search.answer->winner);
}

void AddConfigurations(const Accelerator& accelerator, const study::Configuration& best, HardwareRun& run) {
  const size_t first = run.design.configurations.size();
  const auto add = [&](const Accelerator::Engine& engine, const char* which) {
    study::Configuration one{.factors = best.factors, .waterfall_only = false, .label = accelerator.name};
    one.factors[kAccelerator] = engine.text;
    if (!best.label.empty()) one.label += ", " + best.label;
    one.label += which;
    run.design.configurations.push_back(std::move(one));
  };
  add(accelerator.middle, "");
  add(accelerator.fast, ", fast end");
  add(accelerator.slow, ", slow end");
  run.ends.push_back({.middle = first, .fast = first + 1, .slow = first + 2});
}

void AddTrials(const study::StudyFile& file, study::Design& design) {
  design.blocks = std::clamp(file.repeats, kLeastBlocks, kMostBlocks);
  for (int block = 0; block < design.blocks; ++block) {
    const Seed seed = Seed(file.seed).Stream("hardware").Stream(static_cast<uint64_t>(block));
    std::vector<size_t> order(design.configurations.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    Random random = seed.Stream("order").MakeRandom();
    Shuffle(order, random);
    for (size_t position = 0; position < order.size(); ++position)
      design.trials.push_back({.configuration = order[position],
                               .block = block,
                               .position = static_cast<int>(position),
                               .seed = seed.value(),
                               .id = fmt::format("hardware-{}-{}", order[position], block)});
  }
}

// The share at a faster accelerator is smaller, as the data path stays what it is.
void AddShare(const study::Measured& measured, const PredictedEnds& ends, const Accelerator& accelerator,
              double batch, Hardware& hardware) {
  const auto mean = [&](size_t configuration) {
    return ExpectedOf(measured, {}, configuration, kThroughputMetric);
  };
  const auto middle = mean(ends.middle), fast = mean(ends.fast), slow = mean(ends.slow);
  if (!middle || !fast || !slow || !middle->low || !middle->high || !(*middle->low > 0)) return;
  const double share = middle->value / accelerator.middle.ImagesPerSecond(batch);
  const double at_fast = fast->value / accelerator.fast.ImagesPerSecond(batch);
  const double at_slow = slow->value / accelerator.slow.ImagesPerSecond(batch);
  const auto [least, most] = std::minmax({share, at_fast, at_slow});
  const double down = std::hypot(std::log(middle->value / *middle->low), std::log(share / least));
  const double up = std::hypot(std::log(*middle->high / middle->value), std::log(most / share));
  hardware.fed_share =
      Expected{.n = middle->n, .value = share, .low = share * std::exp(-down), .high = share * std::exp(up)};
  hardware.feeding = *hardware.fed_share->low >= kFedShare   ? Hardware::kFed
                     : *hardware.fed_share->high < kFedShare ? Hardware::kNotFed
                                                             : Hardware::kUndecided;
}

// Higher rates cost less.
std::optional<Expected> CostOf(const Expected& rate, std::optional<double> price) {
  if (!price || !(rate.value > 0)) return std::nullopt;
  const auto cost = [&](double images_per_s) { return *price / (3600 * images_per_s) * 1e6; };
  Expected expected{.n = rate.n, .value = cost(rate.value)};
  if (rate.low && *rate.low > 0) {
    expected.low = cost(*rate.high);
    expected.high = cost(*rate.low);
  }
  return expected;
}

std::string WithInterval(const Expected& expected, double scale) {
  if (!expected.low || !expected.high) return Short(scale * expected.value);
  return fmt::format("{} ({} to {})", Short(scale * expected.value), Short(scale * *expected.low),
                     Short(scale * *expected.high));
}

}  // namespace

Result<HardwareRun> RunHardware(const HardwareInputs& inputs) {
  HardwareRun run{.goal = inputs.goal};
  for (const Accelerator& one : inputs.accelerators) {
    if (one.price_per_hour) run.goal.price_per_hour[one.middle.text] = *one.price_per_hour;
  }
  study::StudyFile last;
  for (const Accelerator& accelerator : inputs.accelerators) {
    const study::StudyFile file = WithAccelerator(inputs.file, accelerator.middle.text);
    const study::Design design = TRY(study::MakeDesign(file));
    TRY_STATUS(CheckPlaces(design));
    const auto best = TRY(BestOf(inputs, file, design, run));
    if (!best) return HardwareRun{.stopped = true};
    AddConfigurations(accelerator, design.configurations[*best], run);
    last = file;
  }
  AddTrials(last, run.design);
  const study::TrialFn play = inputs.player(last, run.design);
  for (const study::Trial& trial : run.design.trials) {
    if (inputs.stop.stop_requested()) return HardwareRun{.stopped = true};
    const Json& factors = run.design.configurations[trial.configuration].factors;
    run.played.push_back(TRY(inputs.trials.Play(trial, factors, play, true)));
    if (inputs.progress)
      inputs.progress({.phase = Phase::kConfirmation,
                       .trials = run.search_trials + std::ssize(run.played),
                       .label = run.design.configurations[trial.configuration].label});
  }
  return run;
}

std::vector<Hardware> JudgeHardware(const HardwareRun& run, const std::vector<Accelerator>& accelerators,
                                    const Decision& decision) {
  const study::Measured measured(run.design, run.played);
  std::vector<Hardware> list;
  for (size_t i = 0; i < accelerators.size(); ++i) {
    const Accelerator& accelerator = accelerators[i];
    const PredictedEnds& ends = run.ends[i];
    const study::Configuration& configuration = run.design.configurations[ends.middle];
    const double batch = configuration.factors.value("batch", 8.0);
    Hardware one{.name = accelerator.name,
                 .engine = accelerator.middle.text,
                 .fast_engine = accelerator.fast.text,
                 .slow_engine = accelerator.slow.text,
                 .outside = accelerator.outside,
                 .label = configuration.label,
                 .standing = std::string(ToString(Standing::kNotMeasured))};
    const auto candidate = std::ranges::find(decision.candidates, ends.middle, &Candidate::configuration);
    if (candidate != decision.candidates.end()) one.standing = ToString(candidate->standing);
    const bool disturbed =
        candidate != decision.candidates.end() && candidate->standing == Standing::kDisturbed;
    one.throughput_images_per_s = ExpectedOf(measured, run.ends, ends.middle, kThroughputMetric);
    one.accelerator_images_per_s = Expected{.n = 0,
                                            .value = accelerator.middle.ImagesPerSecond(batch),
                                            .low = accelerator.slow.ImagesPerSecond(batch),
                                            .high = accelerator.fast.ImagesPerSecond(batch)};
    if (one.throughput_images_per_s) {
      AddShare(measured, ends, accelerator, batch, one);
      if (disturbed) one.feeding = Hardware::kUndecided;  // most of its trials are not VALID
      one.price_per_hour = PriceOf(configuration.factors, run.goal);
      one.cost_per_million_images = CostOf(*one.throughput_images_per_s, one.price_per_hour);
    }
    const auto bottleneck = study::FindNextBottleneck(ends.middle, measured, study::AnalysisOptions{});
    if (bottleneck) one.bottleneck = bottleneck->stage;
    list.push_back(std::move(one));
  }
  return list;
}

std::string HardwareText(const std::vector<Hardware>& hardware) {
  std::string text;
  for (const Hardware& one : hardware) {
    if (!one.throughput_images_per_s || !one.fed_share) {
      text += fmt::format("{}: no trial counts\n", one.name);
      continue;
    }
    const char* verb = one.feeding == Hardware::kFed      ? "feeds it"
                       : one.feeding == Hardware::kNotFed ? "does not feed it"
                                                          : "may or may not feed it";
    text += fmt::format(
        "{}: the data path {}: {} images/s, {} % of the {} images/s that are predicted for it "
        "alone",
        one.label, verb, WithInterval(*one.throughput_images_per_s, 1), WithInterval(*one.fed_share, 100),
        WithInterval(*one.accelerator_images_per_s, 1));
    if (one.cost_per_million_images)
      text += fmt::format("; {} per million images", WithInterval(*one.cost_per_million_images, 1));
    text += "\n";
    if (!one.outside.empty())
      text += fmt::format("note: {}: the prediction is outside its data: {}\n", one.name, one.outside);
  }
  return text;
}

}  // namespace weir::advise
