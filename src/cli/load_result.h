// What putting load on a model came to, for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/console.h"
#include "cli/load_ceiling.h"
#include "cli/load_flags.h"
#include "cli/load_target.h"
#include "cli/server_times.h"
#include "infer/endpoint.h"
#include "load/session/peak_search.h"
#include "load/verdict/judge.h"
#include "load/verdict/mlperf.h"
#include "monitor/resources.h"
#include "record/provenance.h"
#include "stats/early_stopping.h"

namespace weir::cli {

// One level, over its repeats.
struct LevelResult {
  LoadLevel level;
  std::vector<load::RunOutcome> repeats;
  load::Tally tally;  // of all repeats
  load::Claims claims;
  double measured_s = 0, cpu_s = 0, spin_s = 0;                   // sums over the repeats
  infer::PhaseTotals server;                                      // what the server counted meanwhile
  std::optional<load::ServerShare> server_share;                  // and how much of it was ours
  std::optional<monitor::Resources> resources, server_resources;  // of the last repeat
  std::optional<stats::Answer> below_threshold;
  std::optional<load::MlperfResult> mlperf;

  double throughput() const;  // totals over time
  double elapsed_s() const;   // warm-ups and measured time
  int64_t answered() const { return tally.answered(); }
};

struct LoadResult {
  const LoadFlags& flags;
  const LoadTarget& target;
  LoadLength length;
  int batch = 1;
  std::vector<LevelResult> levels;
  std::optional<load::PeakSearch::Outcome> peak;
  bool peak_spoiled = false;  // the generator or the machine spoiled a rate's runs, and so ended the search
  bool interrupted = false;
  std::optional<Ceiling> ceiling;  // the generator's own, where it was measured
};

// A level, as soon as it is played.
std::string LevelText(const Console& console, const LoadResult& result, const LevelResult& level);
// All levels in one table.
std::string TableText(const LoadResult& result);
// What the generator itself can do; empty where that was not measured.
std::string CeilingText(const LoadResult& result);
// What a search for the largest rate came to; empty where there was none.
std::string PeakText(const Console& console, const LoadResult& result);
Json ResultJson(const LoadResult& result, const record::Provenance& provenance);
// The table with perf_analyzer's columns.
std::string ResultCsv(const LoadResult& result);

}  // namespace weir::cli
