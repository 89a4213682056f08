#include "load/session/ceiling.h"

#include <algorithm>
#include <memory>

#include "load/generator/generator.h"
#include "load/session/null_server.h"

namespace weir::load {
namespace {

constexpr int kInFlight = 16;
constexpr int64_t kFew = 300;

Result<RunOutcome> PlayClosed(Target& target, const Requests& requests, const Concurrency& load,
                              Duration length, const Clock& clock, const std::stop_token& stop) {
  PlayHooks hooks;
  if (target.is_driven()) {
    hooks.drive = [&](Instant until, Duration awake) { return target.Drive(until, awake); };
  }
  hooks.give_up = [&] { target.GiveUp(); };
  return Play(target.service(), requests, clock,
              {.scenario = load, .warm_up = 2ms, .length = length, .drain = 5s}, hooks, stop);
}

}  // namespace

Result<Ceiling> MeasureCeilingAgainst(Target& null, const std::vector<infer::Request>& requests,
                                      Concurrency::Wait wait, const Clock& clock,
                                      const std::stop_token& stop) {
  Requests pool{.pool = requests, .check = {}};
  TRY_STATUS(null.Prepare(pool));
  const RunOutcome alone = TRY(PlayClosed(null, pool, {1, wait}, 3ms, clock, stop));
  RunOutcome most = TRY(PlayClosed(null, pool, {kInFlight, wait}, 12ms, clock, stop));
  if (most.tally.answered() < kFew)  // large requests
    most = TRY(PlayClosed(null, pool, {kInFlight, wait}, 120ms, clock, stop));
  if (most.tally.answered() == 0)
    return Fail(ErrorCode::kInternal,
                most.errors.empty() ? "a null server answered nothing" : most.errors.front());
  // Threads that wait take turns: the share of one thread's time says nothing of all of them, so their
  // measured rate stands.
  const double busy = null.is_driven() ? std::clamp(most.busiest_thread, 0.05, 1.0) : 1.0;
  Ceiling ceiling{.per_s = most.throughput() / busy, .floor_ms = {}};
  if (const auto median = alone.tally.response.Quantile(0.5))
    ceiling.floor_ms = 1e-6 * static_cast<double>(*median);
  return ceiling;
}

Result<Ceiling> MeasureCeiling(const LoadOptions& options, const Target& target,
                               const std::vector<infer::Request>& requests, const Clock& clock,
                               const std::stop_token& stop) {
  const NullServer server = TRY(NullServer::Start(target.info(), clock));
  LoadOptions null_options = options;
  null_options.target = target.protocol() == ToString(infer::Protocol::kGrpc) ? server.grpc() : server.http();
  null_options.model = null_options.version = null_options.url = "";
  null_options.payload = infer::Payload::kTensor;  // the model goes by its full name there
  null_options.shared_memory = infer::SharedMemory::kNone;
  null_options.balance = LoadOptions().balance;  // it is one server
  const std::unique_ptr<Target> null = TRY(OpenTarget(null_options, clock, kInFlight));
  return MeasureCeilingAgainst(
      *null, requests, options.sync ? Concurrency::Wait::kSync : Concurrency::Wait::kAsync, clock, stop);
}

}  // namespace weir::load
