// The training feed: batches of a set's samples in a random order, augmented, made by threads ahead of the
// consumer.
//
//   sampler::At    which sample stands at a position         (pure: order.h, sampler.h, slice.h)
//   SampleReads    bytes of samples ahead of the threads: a store's, or a disk's by io_uring; else
//   Source::Read SampleMaker    cache, decode the box, resize, augment, write into the batch's row   feed-N
//   Feed::Next     the next batch, in order                  the consumer's thread
//
// Every value depends on the set, the options and the seed alone: not on threads, on the prefetch or on when
// a run was interrupted. Memory is bounded by the batches made ahead and those that the consumer keeps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/choices.h"
#include "base/clock.h"
#include "base/error.h"
#include "feed/augment.h"
#include "feed/batch.h"
#include "feed/cache.h"
#include "feed/sampler.h"
#include "feed/slice.h"
#include "feed/source.h"
#include "feed/state.h"
#include "image/decode.h"

namespace weir::feed {

// The policy for a sample that cannot be read or decoded.
enum class BadPolicy {
  kReplace,  // another sample of the epoch stands in its row, chosen by chance from its position
  kSkip,     // its row is left out; the batch has fewer
  kStop,     // the feed ends with an error that names it
};
inline constexpr Choices<BadPolicy, 3> kBadPolicies{
    {{BadPolicy::kReplace, "replace"}, {BadPolicy::kSkip, "skip"}, {BadPolicy::kStop, "stop"}}};
constexpr std::string_view ToString(BadPolicy policy) { return WordOf(kBadPolicies, policy); }

struct FeedOptions {
  Slice slice;
  SamplerOptions sampler;
  AugmentOptions augment;
  image::DecodeOptions decode;
  uint64_t seed = 0;
  BadPolicy bad = BadPolicy::kReplace;
  std::shared_ptr<const Source> masks;  // sample i is the mask of picture i (OpenMasks); null: none
  CacheOptions cache;
  int threads = 1;
  // Samples that are read, or were read and wait for a thread, at a time. 0: each thread reads its own. -1:
  // as the source wants.
  int reads = -1;
  int prefetch = 2;                     // batches made ahead of the consumer, at least 1
  std::shared_ptr<BatchMemory> memory;  // null: ProcessMemory
};

// The threads' work so far. Times are sums over threads.
struct FeedCounters {
  int64_t samples = 0;                   // made
  int64_t batches = 0;                   // delivered
  int64_t rows = 0;                      // delivered, without those that hold no sample
  int64_t bytes = 0;                     // read
  int64_t cached = 0;                    // samples that came from the cache
  Duration read{}, decode{}, augment{};  // read: with reads ahead, the time that threads waited for them
  Duration cpu{};                        // of the threads
  Duration threads_idle{};               // no batch could be begun: the consumer was slower
  Duration consumer_wait{};              // in Next: the threads were slower
  std::map<std::string, int64_t> bad;    // samples that could not be used, by reason, in delivered batches
};

class FeedEngine;

// A feed of one rank. Next and the functions that change the state are for one thread at a time; the
// destructor may run on another. A feed does not survive fork: the child gets kUnsupported from Next.
class Feed {
 public:
  // Starts no thread before the first Next. `clock` must outlive the feed. kInvalidArgument names the option
  // that does not fit the set.
  static Result<std::unique_ptr<Feed>> Open(std::shared_ptr<const Source> source, FeedOptions options,
                                            const Clock& clock);
  // Waits for the samples that are being made. Batches that the consumer holds stay valid.
  ~Feed();

  // Returns the next batch of the epoch, and waits for it; nullopt at its end, after which the next call
  // begins the next epoch. With kStop the error of the first bad sample, by the order and not by time.
  // kCorrupt if no sample of an epoch could be used.
  Result<std::optional<Batch>> Next();
  // Returns whether Next will neither wait nor move rows: a whole batch is made, or the epoch is at its end.
  bool IsReady() const;
  // Returns false if no batch came before `when`; otherwise true, and Next will not wait.
  bool WaitUntil(Instant when);

  // Returns the batches that Next will still give of this epoch; with kSkip an upper limit.
  int64_t BatchesLeft() const;
  // Returns the batches of a whole epoch.
  int64_t BatchesPerEpoch() const;

  // Returns where the feed stands: after the batches that Next has given.
  FeedState state() const;
  // Goes on from a state. Errors as CheckState.
  Status SetState(const FeedState& state);
  // Goes to the beginning of an epoch; does nothing if the feed stands there.
  Status SetEpoch(int64_t epoch);

  FeedCounters counters() const;
  // The first hundred samples that could not be used, by their order.
  std::vector<BadSample> bad_samples() const;
  const Source& source() const;
  const FeedOptions& options() const;
  // Returns the bytes of one row: a picture's, or a record's.
  size_t row_bytes() const;
  const Sampler& sampler() const;

 private:
  explicit Feed(std::unique_ptr<FeedEngine> engine);
  std::unique_ptr<FeedEngine> engine_;
};

}  // namespace weir::feed
