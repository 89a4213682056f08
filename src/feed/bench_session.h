// A measurement of a feed from its options to its result.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "feed/bench.h"
#include "feed/bench_result.h"
#include "feed/feed.h"
#include "feed/source.h"
#include "results/feed_result.h"

namespace weir::feed {

struct BenchSetup {
  std::string set, masks;  // as OpenSource and OpenMasks take them; empty masks: none
  SourceOptions source;
  FeedOptions feed;
  BenchOptions bench;
  std::string state;  // FormatState's text to go on from; empty: from the beginning
};

// One thread at a time.
class BenchSession {
 public:
  // `clock` must outlive the session. The errors are those of OpenSource, OpenMasks, Feed::Open, ParseState
  // and SetState.
  static Result<std::unique_ptr<BenchSession>> Open(BenchSetup setup, const Clock& clock);

  // Takes the batches of the warm-up now, so that Run measures from its call on.
  Status WarmUp(const std::stop_token& stop);
  // Measures. The result has no provenance and no command: they are the caller's.
  Result<results::FeedResult> Run(const std::stop_token& stop,
                                  const std::function<void(double elapsed_s, int64_t rows)>& progress);

  // Returns the samples that are wanted; 0 where the time decides.
  int64_t SamplesWanted() const;
  const Feed& feed() const { return *feed_; }
  // Ranks that wait for one another. Call it before Run.
  void MeetBy(std::function<Result<bool>(int64_t step, bool last)> meet) { bench_.meet = std::move(meet); }

 private:
  BenchSession(std::string set, BenchOptions bench, std::unique_ptr<Feed> feed, const Clock& clock)
      : set_(std::move(set)),
        bench_(std::move(bench)),
        feed_(std::move(feed)),
        mixing_(MixingOf(*feed_)),
        clock_(clock) {}

  const std::string set_;
  BenchOptions bench_;
  const std::unique_ptr<Feed> feed_;
  const Mixing mixing_;
  const Clock& clock_;
  double first_batch_s_ = 0;  // of WarmUp
};

}  // namespace weir::feed
