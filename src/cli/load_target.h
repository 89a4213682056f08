// What `weir load` puts load on: a model behind a URL, or one in this process.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "cli/load_flags.h"
#include "infer/endpoint.h"
#include "load/generator/generator.h"

namespace weir::cli {

// One thread at a time, but for its service.
class LoadTarget {
 public:
  virtual ~LoadTarget() = default;

  virtual infer::Service& service() = 0;
  virtual const infer::ModelInfo& info() const = 0;
  virtual std::string version() const = 0;
  virtual std::string Title() const = 0;     // who answers, in a line
  virtual std::string protocol() const = 0;  // "http", "grpc", "in-process"
  // infer::Endpoint::Drive of the service, where it has no threads.
  virtual bool is_driven() const { return false; }
  virtual Duration Drive(Instant /*until*/, Duration /*awake*/) { return {}; }
  // Has the service answer all that is out, at once: the service is another one afterwards.
  virtual void GiveUp() = 0;
  // What its server has counted so far; nothing where it does not tell.
  virtual std::optional<infer::PhaseTotals> Statistics() = 0;
  virtual std::map<std::string, std::string> Libraries() const { return {}; }
  // The requests in the form in which they leave, made once.
  virtual Status Prepare(load::Requests& requests) = 0;
};

// kInvalidArgument names flags that make no sense together. `flags` and `clock` must outlive it.
Result<std::unique_ptr<LoadTarget>> OpenLoadTarget(const LoadFlags& flags, const Clock& clock,
                                                   int most_in_flight);

}  // namespace weir::cli
