// A preparation from its request to its result.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"
#include "prepare/request.h"
#include "results/check_results.h"
#include "results/prepare_result.h"

namespace weir::prepare {

struct SessionHooks {
  // Several times a second, on the thread that prepares. `what`: "prepare", "join" or "verify".
  std::function<void(const std::string& what, double elapsed_s, int64_t done, int64_t total,
                     const std::string& extra)>
      progress;
  std::function<void()> progress_ended;
  std::function<Feed(int64_t count, Seed seed)> made_feed;  // of drawn pictures
  // Gives the options the judge of the request's model. The judge must outlive the session.
  std::function<Status(const PrepareRequest& request, Options& options)> add_judge;
};

struct SessionEnd {
  std::variant<results::PrepareResult, results::VerifyResult> result;  // without provenance and command
  std::string text;                                                    // for people
  bool clean = false;    // nothing was rejected; for a check: no fault
  bool nothing = false;  // a whole set that holds no picture
};

// Makes, joins or verifies, then publishes, and writes the preview. Blocks. Errors as CheckRequest, and those
// of the work; kCancelled after a stop, and the same request continues.
Result<SessionEnd> Prepare(PrepareRequest request, const SessionHooks& hooks, const Clock& clock,
                           const std::stop_token& stop);

}  // namespace weir::prepare
