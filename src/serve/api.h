// The server's operations for clients of both protocols.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "oip/api.h"
#include "oip/status.h"
#include "serve/failure_log.h"
#include "serve/inference_path.h"
#include "serve/metrics.h"
#include "serve/repository.h"
#include "serve/shared_memory_registry.h"

namespace weir::serve {

// Whether the server may still be sent requests.
enum class Life {
  kServing,
  kLeaving,   // not ready any more, but what still comes is answered
  kStopping,  // new work is refused
};

// Thread-safe.
class ServerApi final : public oip::Api {
 public:
  struct Options {
    std::string version;           // of the program
    bool strict_readiness = true;  // ready only when all models asked for are; otherwise when it serves
    bool explicit_control = false;
    bool allow_regions = false;
    oip::Compat compat = oip::Compat::kNone;  // kTriton: its name, its version and its words, too
  };
  struct Parts {
    Repository& repository;
    InferencePath& path;
    SharedMemoryRegistry* regions = nullptr;  // null: off
    Metrics& metrics;
    FailureLog& failures;
  };
  // The parts must outlive it.
  ServerApi(Options options, Parts parts, const Clock& clock);

  void SetLife(Life life) { life_ = life; }
  // The gauges, as of now; before the metrics are read.
  void Gauge();

  Status Live() override { return {}; }
  Status Ready() override;
  Status ModelReady(const std::string& model, const std::string& version) override;
  oip::ServerMetadata Server() override;
  Result<oip::ModelMetadata> Metadata(const std::string& model, const std::string& version) override;
  Result<oip::ModelConfig> Config(const std::string& model, const std::string& version) override;
  Result<std::string> Labels(const std::string& model, const std::string& version) override;
  Result<std::vector<oip::ModelStatistics>> Statistics(const std::string& model,
                                                       const std::string& version) override;
  std::vector<oip::IndexEntry> Index(bool ready_only) override;
  Status MayControl() override;
  void Load(const std::string& model, const std::string& config, Done done) override;
  void Unload(const std::string& model, Done done) override;
  Status RegisterRegion(const oip::Region& region) override;
  Status UnregisterRegion(const std::string& name) override;
  Result<std::vector<oip::Region>> Regions(const std::string& name) override;
  Status RegisterCudaRegion(const oip::CudaRegion& region) override;
  Status UnregisterCudaRegion(const std::string& name) override;
  Result<std::vector<oip::CudaRegion>> CudaRegions(const std::string& name) override;
  void Infer(oip::InferRequest request, infer::Completion completion) override;
  void Observe(const oip::RequestTrace& exchange) override;

 private:
  Result<std::shared_ptr<ServedModel>> Find(const std::string& model, const std::string& version) const;
  bool IsTriton() const { return options_.compat == oip::Compat::kTriton; }

  const Options options_;
  const Parts parts_;
  const Clock& clock_;
  const WallTime wall_;
  std::atomic<Life> life_{Life::kServing};
};

}  // namespace weir::serve
