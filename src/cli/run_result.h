// Prints the result of a run, for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/console.h"
#include "cli/run_flags.h"
#include "dataset/source.h"
#include "monitor/resources.h"
#include "record/provenance.h"
#include "results/bottleneck.h"
#include "results/run_result.h"
#include "run/application.h"
#include "run/backend.h"

namespace weir::cli {

struct RunResult {
  const RunFlags& flags;
  const run::Options& options;
  const run::Backend& recogniser;
  const dataset::Listing& listing;
  run::Report report;
  Status labels;  // whether they are classes of the model: else the answers are not held against them
  results::Bounds bounds;
  std::optional<results::Bottleneck> bottleneck;
  monitor::Resources resources;
  std::optional<monitor::Resources> server_resources;  // of the server, where it was watched
  std::vector<std::string> shown;                      // the first answers, a line each
};

// The same numbers in both. MakeResult fails if the backend describes itself by a key of another kind.
std::string ResultText(const Console& console, const RunResult& result);
Result<results::RunResult> MakeResult(const RunResult& result, const record::Provenance& provenance);

}  // namespace weir::cli
