#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stop_token>

#include "advise/cards.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/cluster_flags.h"
#include "cli/console.h"
#include "cli/feed_flags.h"
#include "cli/verbs.h"
#include "cluster/join.h"
#include "cluster/rank.h"
#include "feed/bench_result.h"
#include "probe/feed/cluster_feed.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

// Takes rank and world from the launcher's environment, unless a flag says them.
Status FindOwnRank(FeedFlags& w, const Console& console) {
  const bool said = std::ranges::any_of(
      w.given, [](const std::string& flag) { return flag == "--rank" || flag == "--world"; });
  if (said || w.join.any()) return {};
  const auto found =
      TRY(cluster::FindRank([](const char* name) -> const char* { return std::getenv(name); }));
  if (!found) return {};
  if (found->world == 0)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} tells rank {} and not of how many: set WORLD_SIZE, or give --rank and --world",
                    found->launcher, found->rank));
  w.rank = found->rank;
  w.world = found->world;
  console.Note(fmt::format("rank {} of {}, from {}", w.rank, w.world, found->launcher));
  return {};
}

Result<std::string> ReadState(const std::string& file) {
  if (file.empty()) return std::string();
  TRY_STATUS(CheckOutput("--state", file));
  auto text = ReadTextFile(file);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::string();
  return text;
}

// Returns the step of the emulated trainer, which is that of the named cards if there are any.
Result<Duration> StepOf(const FeedFlags& w, Duration said, const Console& console) {
  if (w.accelerators.empty()) return said;
  std::vector<std::string> notes;
  const Duration step = TRY(advise::SharedStep(
      w.accelerators,
      {.card = {}, .profile = w.profile, .predictor = w.predictor, .network = w.network, .batch = w.batch},
      notes));
  for (const std::string& note : notes) console.Note(note);
  return step;
}

Result<results::FeedResult> FeedHere(feed::BenchSetup setup, Console& console, const Clock& clock,
                                     const std::stop_token& stop) {
  const auto session = TRY(feed::BenchSession::Open(std::move(setup), clock));
  auto result = session->Run(stop, [&](double elapsed_s, int64_t rows) {
    console.Progress(elapsed_s, "feed", rows, std::max(rows, session->SamplesWanted()), "");
  });
  console.EndProgress();
  return result;
}

Result<results::FeedResult> FeedThere(const FeedFlags& w, const feed::BenchSetup& setup,
                                      const Console& console, const Clock& clock,
                                      const std::stop_token& stop) {
  const cluster::JoinedAgents agents = TRY(JoinAndSay(w.join, clock, console, stop));
  const FlagsCall open{
      .arguments = OwnArguments(), .state = setup.state, .step = setup.bench.step, .batch = 1};
  return probe::FeedOnHosts(*agents.cluster, open.ToMessage(), clock, stop);
}

Result<int> BenchFeed(FeedFlags& w, const std::stop_token& stop) {
  Console console(w.json);
  TRY_STATUS(console.CheckJson());
  TRY_STATUS(FindOwnRank(w, console));
  feed::BenchSetup setup = TRY(SetupOf(w));
  setup.state = TRY(ReadState(w.state));
  setup.bench.step = TRY(StepOf(w, setup.bench.step, console));
  const SteadyClock clock;
  results::FeedResult result = w.join.any() ? TRY(FeedThere(w, setup, console, clock, stop))
                                            : TRY(FeedHere(std::move(setup), console, clock, stop));
  result.provenance =
      record::CollectProvenance({.command = CommandLine(), .seed = static_cast<uint64_t>(w.seed)}).ToJson();
  result.command = record::CommandLine(CommandLine());
  if (!w.state.empty()) TRY_STATUS(WriteFileWhole(w.state, DumpJson(result.state) + "\n"));
  console.Text(feed::BenchText(console.style(), result));
  TRY_STATUS(console.Json(result.ToJson()));
  const bool lost = std::ranges::any_of(result.hosts, [](const auto& host) { return host.lost.has_value(); });
  if (lost) return kClaimInvalid;
  if (result.interrupted) return kInterrupted;
  return w.strict && !result.rejected.empty() ? kJobFailed : kDone;
}

}  // namespace

int FeedVerb(const Arguments& arguments) {
  FeedFlags w;
  if (const auto status = ParseFeedFlags(arguments, w)) return *status;
  const Interrupt interrupt;
  const Result<int> done = BenchFeed(w, interrupt.token());
  return done ? *done : FailWith(done.error());
}

}  // namespace weir::cli
