// Models for tests: a FakeSession behind everything that a served model has.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "infer/testing/fake_session.h"
#include "serve/loaded_model.h"
#include "serve/loader.h"

namespace weir::serve::testing {

using infer::testing::FakeSession;

inline model::Model FakeModel(const std::string& name, const infer::Session& session, int max_batch) {
  model::Model model{.name = name, .inputs = session.inputs(), .outputs = session.outputs()};
  model.client_inputs = model.inputs;
  model.client_outputs = model.outputs;
  model.serving_max_batch = max_batch;
  return model;
}

inline std::unique_ptr<LoadedModel> Load(model::Model model, const std::string& version,
                                         std::shared_ptr<infer::Session> session, const Clock& clock,
                                         Metrics& metrics) {
  auto loaded = LoadedModel::Create({.model = std::move(model),
                                     .version = version,
                                     .session = std::move(session),
                                     .engine_spec = "onnxruntime"},
                                    clock, metrics);
  CHECK(loaded.has_value());
  return *std::move(loaded);
}

// A Loader whose versions, sessions and failures a test decides, and that can be held closed like a gate.
// Thread-safe.
class FakeLoader final : public Loader {
 public:
  FakeLoader(const Clock& clock, Metrics& metrics) : clock_(clock), metrics_(metrics) {}

  Result<std::vector<std::string>> Versions(const Wanted& wanted) override {
    MutexLock lock(mutex_);
    while (closed_) changed_.Wait(mutex_);
    const auto found = versions_.find(wanted.name);
    return found == versions_.end() ? std::vector<std::string>{"1"} : found->second;
  }
  Result<std::unique_ptr<LoadedModel>> Load(const Wanted& wanted) override {
    MutexLock lock(mutex_);
    const std::string what = wanted.name + "/" + wanted.version;
    if (const auto fault = faults_.find(what); fault != faults_.end())
      return Fail(ErrorCode::kCorrupt, fault->second);
    const auto session = std::make_shared<FakeSession>();
    sessions_[what] = session;
    return testing::Load(FakeModel(wanted.name, *session, 4), wanted.version, session, clock_, metrics_);
  }

  void SetVersions(const std::string& model, std::vector<std::string> versions) {
    MutexLock lock(mutex_);
    versions_[model] = std::move(versions);
  }
  void SetFault(const std::string& what, const std::string& fault) {  // "m/1"; empty: none
    MutexLock lock(mutex_);
    if (fault.empty()) {
      faults_.erase(what);
    } else {
      faults_[what] = fault;
    }
  }
  // The last session loaded of "m/1".
  std::shared_ptr<FakeSession> SessionOf(const std::string& what) {
    MutexLock lock(mutex_);
    return sessions_.at(what);
  }
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  void Open() {
    MutexLock lock(mutex_);
    closed_ = false;
    changed_.NotifyAll();
  }

 private:
  const Clock& clock_;
  Metrics& metrics_;
  Mutex mutex_;
  CondVar changed_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::map<std::string, std::vector<std::string>> versions_ GUARDED_BY(mutex_);
  std::map<std::string, std::string> faults_ GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<FakeSession>> sessions_ GUARDED_BY(mutex_);
};

}  // namespace weir::serve::testing
