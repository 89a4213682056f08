// The outputs of a network without its last layer for made pictures.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "base/error.h"
#include "base/seed.h"
#include "dataset/recipe.h"
#include "infer/engine.h"
#include "stats/least_squares.h"

namespace weir::synth {

struct FeatureSpec {
  dataset::Recipe recipe;
  Seed seed{1};          // of the pictures
  int64_t pictures = 0;  // the first so many of that seed
  std::stop_token stop;
  std::function<void(int64_t done, int64_t total)> progress;  // on the calling thread; may be empty
};

struct LabelledFeatures {
  stats::Matrix features;  // a row a picture
  std::vector<int> labels;
};

// Draws, prepares and infers, in turns that use every CPU of the process each. `session` has one input and
// one output of [N, features]. kCancelled when `stop` was asked for; else what drawing or the engine failed
// with.
Result<LabelledFeatures> ComputeFeatures(infer::Session& session, const FeatureSpec& spec);

}  // namespace weir::synth
