// The parts of a work, made apart, to the set that one machine would have made.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "prepare/prepare.h"

namespace weir::prepare {

struct JoinOptions {
  std::vector<std::string> parts;  // finished sets of parts, or folders that hold them
  std::string folder;              // of the joined set: absent, empty, or with a join that was broken off
  std::stop_token stop;
  std::function<void(const Progress&)> progress;  // called on this thread after each picture
};

// Joins all parts of one work: byte for byte the set that PrepareSet makes without parts. Where the parts
// hold variations, each becomes a set of its own. Every picture is held against its hash on the way. A join
// that was broken off is begun anew. kInvalidArgument for parts that are missing, there twice, unfinished, or
// not of the same work; kCorrupt for damaged ones; kCancelled.
Result<PrepareSummary> JoinParts(const JoinOptions& options, const Clock& clock);

}  // namespace weir::prepare
