#include "cli/load_ceiling.h"

#include <algorithm>
#include <memory>

#include "cli/null_server.h"
#include "load/generator/generator.h"

namespace weir::cli {
namespace {

constexpr int kInFlight = 16;
constexpr int64_t kFew = 300;

Result<load::RunOutcome> PlayClosed(LoadTarget& target, const load::Requests& requests, int in_flight,
                                    Duration length, const LoadFlags& flags, const Clock& clock,
                                    const std::stop_token& stop) {
  using Wait = load::Concurrency::Wait;
  load::PlayHooks hooks;
  if (target.is_driven()) {
    hooks.drive = [&](Instant until, Duration awake) { return target.Drive(until, awake); };
  }
  hooks.give_up = [&] { target.GiveUp(); };
  return load::Play(target.service(), requests, clock,
                    {.scenario = load::Concurrency{in_flight, flags.sync ? Wait::kSync : Wait::kAsync},
                     .warm_up = 2ms,
                     .length = length,
                     .drain = 5s},
                    hooks, stop);
}

}  // namespace

Result<Ceiling> MeasureCeiling(const LoadFlags& flags, const LoadTarget& target,
                               const std::vector<infer::Request>& requests, const Clock& clock,
                               const std::stop_token& stop) {
  const NullServer server = TRY(NullServer::Start(target.info(), clock));
  LoadFlags null_flags = flags;
  null_flags.target = target.protocol() == "grpc" ? server.grpc() : server.http();
  null_flags.model = null_flags.version = null_flags.url = "";
  null_flags.payload = "tensor";  // the model goes by its full name there
  null_flags.shared_memory = "none";
  const std::unique_ptr<LoadTarget> null = TRY(OpenLoadTarget(null_flags, clock, kInFlight));
  load::Requests pool{.pool = requests, .check = {}};
  TRY_STATUS(null->Prepare(pool));
  const load::RunOutcome alone = TRY(PlayClosed(*null, pool, 1, 3ms, null_flags, clock, stop));
  load::RunOutcome most = TRY(PlayClosed(*null, pool, kInFlight, 12ms, null_flags, clock, stop));
  if (most.tally.answered() < kFew)  // large ones
    most = TRY(PlayClosed(*null, pool, kInFlight, 120ms, null_flags, clock, stop));
  if (most.tally.answered() == 0)
    return Fail(ErrorCode::kInternal,
                most.errors.empty() ? "a null server answered nothing" : most.errors.front());
  // Waiting threads hand over to one another: how much of a thread's time a request takes does not say what
  // all of them could do, so what they did stands.
  const double busy = null->is_driven() ? std::clamp(most.busiest_thread, 0.05, 1.0) : 1.0;
  Ceiling ceiling{.per_s = most.throughput() / busy, .floor_ms = {}};
  if (const auto median = alone.tally.response.Quantile(0.5))
    ceiling.floor_ms = 1e-6 * static_cast<double>(*median);
  return ceiling;
}

}  // namespace weir::cli
