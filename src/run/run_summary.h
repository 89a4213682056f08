// A run that has ended: its text for people and its typed result.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text_style.h"
#include "dataset/source.h"
#include "monitor/resources.h"
#include "record/provenance.h"
#include "results/bottleneck.h"
#include "results/run_result.h"
#include "run/application.h"
#include "run/backend.h"

namespace weir::run {

// References outlive it.
struct RunSummary {
  std::string mode;  // "sync" or "async"
  const Options& options;
  const Backend& backend;
  const dataset::Listing& listing;
  Report report;
  Status labels;  // whether they are classes of the model: else the answers are not held against them
  results::Bounds bounds;
  std::optional<results::Bottleneck> bottleneck;
  monitor::Resources resources;
  std::optional<monitor::Resources> server_resources;  // of the server, if it was watched
  std::vector<std::string> shown;                      // the first answers, a line each
  std::string command;                                 // that repeats the run
};

// Returns the lines at the end of a run.
std::string SummaryText(const TextStyle& style, const RunSummary& summary);
// Returns the same figures. Fails if the backend describes itself by a key of another kind.
Result<results::RunResult> MakeResult(const RunSummary& summary, const record::Provenance& provenance);

}  // namespace weir::run
