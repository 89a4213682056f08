#include "trial/phases_beside.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "results/feed_result.h"
#include "trial/commands.h"

namespace weir::trial {
namespace {

constexpr Duration kPatience = 20s;  // of a phase that is to end: it keeps what it has done

}  // namespace

Result<std::unique_ptr<PhasesBeside>> PhasesBeside::Start(Options options, const Clock& clock) {
  std::unique_ptr<PhasesBeside> phases(new PhasesBeside(std::move(options), clock));
  const Options& wanted = phases->options_;
  std::error_code error;
  std::filesystem::remove_all(wanted.folder, error);
  TRY_STATUS(MakeFolders(wanted.folder));
  if (wanted.feed)
    TRY_STATUS(phases->StartOne(
        "feed", FeedArguments(wanted.program, wanted.set, wanted.seed, phases->FeedResultFile()),
        wanted.limits.feed));
  if (wanted.prepare)
    TRY_STATUS(phases->StartOne("prepare",
                                PrepareArguments(wanted.program, wanted.source, phases->PrepareFolder()),
                                wanted.limits.prepare));
  return phases;
}

Status PhasesBeside::StartOne(const std::string& name, std::vector<std::string> arguments,
                              std::optional<double> cores) {
  Phase phase{.name = name, .limit = nullptr, .program = nullptr, .begin = clock_.Now(), .cores = cores};
  if (cores) phase.limit = TRY(CpuLimit::Make(name, *cores));
  phase.program = TRY(launch::Program::Start(
      "weir " + name, "", {.arguments = std::move(arguments), .parent_death_signal = SIGKILL}, clock_));
  if (phase.limit) TRY_STATUS(phase.limit->Add(phase.program->pid()));
  phases_.push_back(std::move(phase));
  return {};
}

PhasesBeside::~PhasesBeside() {
  phases_.clear();
  std::error_code error;
  std::filesystem::remove_all(options_.folder, error);
}

Result<results::TrialMetrics::Beside> PhasesBeside::Stop() {
  results::TrialMetrics::Beside beside;
  const Instant end = clock_.Now();
  for (Phase& phase : phases_) {
    if (const auto ending = phase.program->WaitForEnd(end))
      return Fail(ErrorCode::kIo, fmt::format("weir {} ended with {} before the client did: {}", phase.name,
                                              ending->ToString(), EscapeBytes(phase.program->LastWords())));
    phase.program->Signal(SIGINT);
  }
  for (Phase& phase : phases_) {
    if (!phase.program->WaitForEnd(clock_.Now() + kPatience))
      return Fail(ErrorCode::kDeadline,
                  fmt::format("weir {} did not end when it was interrupted", phase.name));
    (phase.name == "feed" ? beside.feed : beside.prepare) = TRY(Did(phase, end));
  }
  return beside;
}

// The feed tells its samples itself. An interrupted prepare leaves a line for each picture that is whole.
Result<results::TrialMetrics::Phase> PhasesBeside::Did(const Phase& phase, Instant end) const {
  results::TrialMetrics::Phase did{.seconds = Seconds(end - phase.begin), .limit_cores = phase.cores};
  if (phase.name == "feed") {
    const Json json = TRY_CONTEXT(ParseJson(TRY(ReadTextFile(FeedResultFile()))), "the feed's result");
    const auto result = TRY_CONTEXT(results::FeedResult::FromJson(json), "the feed's result");
    did.items = result.samples;
    did.seconds = result.wall_s;
  } else {
    const std::string lines = TRY(ReadTextFile(PrepareFolder() + "/manifest.jsonl"));
    did.items = std::ranges::count(lines, '\n');
  }
  if (did.seconds > 0) did.per_s = static_cast<double>(did.items) / did.seconds;
  return did;
}

}  // namespace weir::trial
