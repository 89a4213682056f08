#include "prepare/checkpoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fields.h"
#include "base/thread.h"

namespace weir::prepare {

template <typename F>
void Describe(F& fields, Described<F, Checkpoint>& checkpoint) {
  fields.FromZero("next", checkpoint.next);
  fields("inputs", checkpoint.inputs);
  fields("sets", checkpoint.sets);
  fields("originals", checkpoint.originals);
  fields.Require(std::ranges::all_of(checkpoint.originals, [](int64_t images) { return images >= 0; }),
                 "key \"originals\" has a number below 0");
  fields.Require(checkpoint.originals.empty() || checkpoint.originals.size() == checkpoint.sets.size(),
                 "keys \"originals\" and \"sets\" are not of the same sets");
}

Json Checkpoint::ToJson() const { return FieldsToJson(*this); }

Result<Checkpoint> Checkpoint::FromJson(const Json& json) { return FieldsFromJson<Checkpoint>(json); }

std::string Difference(const Json& had, const Json& wanted) {
  const auto text = [](const Json& json, const std::string& key) {
    const auto found = json.find(key);
    return found == json.end() ? std::string("nothing") : DumpJson(*found);
  };
  for (const Json* side : {&had, &wanted}) {
    for (const auto& item : side->items()) {
      const std::string was = text(had, item.key()), is = text(wanted, item.key());
      if (was != is) return fmt::format("{}: {} then, {} now", item.key(), was, is);
    }
  }
  return "";
}

bool Checkpoints::IsThere(const std::string& folder) {
  return ::access((folder + "/" + kFileName).c_str(), F_OK) == 0;
}

Result<Checkpoints::Opened> Checkpoints::Open(const std::string& folder, const Json& job) {
  const std::string path = folder + "/" + kFileName;
  auto [journal, contents] = TRY(record::Journal::Open(path));
  Opened opened;
  if (contents.entries.empty()) {
    TRY_STATUS(journal.Append(job));
  } else if (const std::string difference = Difference(contents.entries.front(), job); !difference.empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: an unfinished set is there that was begun with other arguments ({}): give the "
                    "same, or remove it, or choose another folder",
                    folder, difference));
  }
  for (size_t i = 1; i < contents.entries.size(); ++i)
    opened.found.push_back(TRY_CONTEXT(Checkpoint::FromJson(contents.entries[i]), path));
  opened.checkpoints.reset(new Checkpoints(path, std::move(journal)));
  return opened;
}

Checkpoints::Checkpoints(std::string path, record::Journal journal)
    : path_(std::move(path)), journal_(std::move(journal)) {
  thread_ = StartThread("settle", [this](const std::stop_token& stop) { Run(stop); });
}

// Settles all posted checkpoints first, so the last one covers the whole of the sets.
Checkpoints::~Checkpoints() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void Checkpoints::Run(const std::stop_token&) {
  for (;;) {
    Task task;
    {
      MutexLock lock(mutex_);
      busy_ = false;
      changed_.NotifyAll();
      while (tasks_.empty() && !ended_) changed_.Wait(mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      if (!status_) continue;  // nothing after it can be vouched for
      busy_ = true;
    }
    Status status;
    for (dataset::Unsettled& unsettled : task.unsettled) {
      if (status) status = dataset::Settle(unsettled);
    }
    if (status) status = journal_.Append(task.checkpoint.ToJson());
    MutexLock lock(mutex_);
    if (!status) status_ = std::move(status);
  }
}

bool Checkpoints::Idle() {
  MutexLock lock(mutex_);
  return tasks_.empty() && !busy_;
}

Status Checkpoints::Post(Checkpoint checkpoint, std::vector<dataset::Unsettled> unsettled) {
  MutexLock lock(mutex_);
  if (!status_) return status_;
  tasks_.push_back({std::move(checkpoint), std::move(unsettled)});
  changed_.NotifyAll();
  return {};
}

Status Checkpoints::Wait() {
  MutexLock lock(mutex_);
  while (!tasks_.empty() || busy_) changed_.Wait(mutex_);
  return status_;
}

Status Checkpoints::Remove() {
  if (::unlink(path_.c_str()) != 0) return FailErrno(path_, errno);
  return {};
}

}  // namespace weir::prepare
