// A server of one model, "identity", whose output OUTPUT0 is its input: the API behind the servers in tests
// and benchmarks.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "oip/api.h"

namespace weir::oip {

// Thread-safe. What a test sets beforehand must not change while requests come.
class FakeApi final : public Api {
 public:
  using Inference = std::function<void(InferRequest, infer::Completion)>;

  Status ready;
  std::atomic<bool> leaving = false;   // not ready any more; may change at any time
  std::atomic<int> unready_looks = 0;  // so many looks find it not ready, the next ones ready
  Inference infer;                     // empty: the identity, answered at once
  Status load;                         // what loading and unloading answer

  Status Live() override { return {}; }
  Status Ready() override {
    const bool unready = unready_looks > 0 && unready_looks.fetch_sub(1) > 0;
    if (leaving || unready) return Fail(ErrorCode::kOverloaded, "leaving");
    return ready;
  }
  Status ModelReady(const std::string& model, const std::string& version) override;
  ServerMetadata Server() override { return {"weir", "0.1.0", {"binary_tensor_data", "statistics"}}; }
  Result<ModelMetadata> Metadata(const std::string& model, const std::string& version) override;
  Result<ModelConfig> Config(const std::string& model, const std::string& version) override;
  Result<std::vector<ModelStatistics>> Statistics(const std::string& model,
                                                  const std::string& version) override;
  std::vector<IndexEntry> Index(bool ready_only) override;
  void Load(const std::string& model, const std::string& config, Done done) override;
  void Unload(const std::string& model, Done done) override;
  Status RegisterRegion(const Region& region) override;
  Status UnregisterRegion(const std::string& name) override;
  Result<std::vector<Region>> Regions(const std::string& name) override;
  Status RegisterCudaRegion(const CudaRegion& region) override;
  Status UnregisterCudaRegion(const std::string& name) override;
  Result<std::vector<CudaRegion>> CudaRegions(const std::string& name) override;
  void Infer(InferRequest request, infer::Completion completion) override;
  void Observe(const RequestTrace& exchange) override;

  std::vector<RequestTrace> exchanges();
  std::vector<std::string> calls();  // "load identity {config}" and the like

 private:
  void Note(std::string call);

  Mutex mutex_;
  std::vector<RequestTrace> exchanges_ GUARDED_BY(mutex_);
  std::vector<std::string> calls_ GUARDED_BY(mutex_);
  std::vector<Region> regions_ GUARDED_BY(mutex_);
  std::vector<CudaRegion> cuda_regions_ GUARDED_BY(mutex_);
};

}  // namespace weir::oip
