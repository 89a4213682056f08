// The result of a feed's measurement, for people and programs. Pure.
#pragma once

#include <string>

#include "base/text_style.h"
#include "feed/bench.h"
#include "feed/feed.h"
#include "feed/sampler.h"
#include "monitor/resources.h"
#include "results/feed_result.h"

namespace weir::feed {

// Measures how the first epoch of the feed's seed mixes its set.
Mixing MixingOf(const Feed& feed);

// Returns the result without set, state, provenance and command, which are the caller's. `used`: the machine
// during the measurement, of `cpus` usable CPUs.
results::FeedResult MakeResult(const Feed& feed, const BenchFigures& figures, const Mixing& mixing,
                               const monitor::Resources& used, int cpus);

// Returns lines for people.
std::string BenchText(const TextStyle& style, const results::FeedResult& result);

}  // namespace weir::feed
