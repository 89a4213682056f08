// `weir predict` for rows given by flags: one, or a table over hardware and batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/console.h"
#include "predict/predictor.h"

namespace weir::cli {

struct AskedRows {
  std::vector<std::string> gpus, set, prices;
  std::string network;
  std::vector<int> batches;
  int devices = 0;          // 0: not said
  int nodes = 0;            // 0: not given
  double network_gbit = 0;  // 0: not given
  int64_t items = 0;        // 0: no job is asked for
  double epochs = 0;        // 0: not said, 1
  bool as_engine = false;

  bool any() const {
    return !gpus.empty() || !set.empty() || !prices.empty() || !network.empty() || !batches.empty() ||
           devices > 0 || nodes > 0 || network_gbit > 0 || items > 0 || epochs > 0 || as_engine;
  }
};

// Flags that say nothing together, before any work.
Status CheckAsked(const AskedRows& asked);

// Says the answers and gives the exit status: kBadInput where every row is refused. kInvalidArgument names
// the flag that is missing, or that the predictor has no use for.
Result<int> AnswerRows(const AskedRows& asked, const predict::Predictor& predictor, const Console& console);

}  // namespace weir::cli
