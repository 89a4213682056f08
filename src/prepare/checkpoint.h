// How far the making of sets has come, kept so that a kill at any moment loses a second of work.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/mutex.h"
#include "dataset/set_writer.h"
#include "record/journal.h"

namespace weir::prepare {

// A moment at which all sets were whole up to one input.
struct Checkpoint {
  int64_t next = 0;    // the first input that is not in them
  std::string inputs;  // hash of the descriptions and states of those before it
  std::vector<dataset::SetPoint> sets;
  std::vector<int64_t> originals;  // by set: its pictures before copies began; empty: they have not

  Json ToJson() const;
  static Result<Checkpoint> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const Checkpoint&) const = default;
};

// The journal beside unfinished sets. Its first line says what is being made; a line follows for each
// checkpoint, once all that it tells of is on the disk. One thread at a time; a thread of its own, "settle",
// waits for the disk.
class Checkpoints {
 public:
  static constexpr const char* kFileName = ".weir-prepare.jsonl";  // in the folder that was asked for
  // Whether a work was begun in `folder` that is not finished.
  static bool IsThere(const std::string& folder);

  struct Opened;
  // Makes the journal with the first line `job`, or goes on with the one there. kInvalidArgument, naming the
  // first key that differs, where that was begun with another job; kIo where another process is at it.
  static Result<Opened> Open(const std::string& folder, const Json& job);
  ~Checkpoints();

  // Whether the last one that was posted has been settled.
  bool Idle();
  // Hands over; `unsettled` is all that was written since the last one. An error is one of an earlier one.
  Status Post(Checkpoint checkpoint, std::vector<dataset::Unsettled> unsettled);
  // Until all is settled.
  Status Wait();
  // Takes the journal away: the sets are finished.
  Status Remove();

 private:
  explicit Checkpoints(std::string path, record::Journal journal);
  void Run(const std::stop_token& stop);

  struct Task {
    Checkpoint checkpoint;
    std::vector<dataset::Unsettled> unsettled;
  };

  const std::string path_;
  record::Journal journal_;  // the thread's, once it runs
  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ GUARDED_BY(mutex_);
  bool busy_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
  Status status_ GUARDED_BY(mutex_);
  std::jthread thread_;
};

struct Checkpoints::Opened {
  std::unique_ptr<Checkpoints> checkpoints;
  std::vector<Checkpoint> found;  // oldest first
};

// The first key of two objects whose values differ, with both; empty where they are equal.
std::string Difference(const Json& had, const Json& wanted);

}  // namespace weir::prepare
