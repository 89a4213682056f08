// The target of a load: a model behind a URL, any HTTP endpoint, or a model in this process.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/endpoint.h"
#include "load/generator/generator.h"
#include "load/session/options.h"

namespace weir::load {

// One thread at a time, except the service.
class Target {
 public:
  virtual ~Target() = default;

  virtual infer::Service& service() = 0;
  virtual const infer::ModelInfo& info() const = 0;
  virtual std::string version() const = 0;
  virtual std::string Title() const = 0;     // the target in a line of text
  virtual std::string protocol() const = 0;  // "http", "grpc", "in-process"
  // infer::Endpoint::Drive of the service, if it has no threads.
  virtual bool is_driven() const { return false; }
  virtual Duration Drive(Instant /*until*/, Duration /*awake*/) { return {}; }
  // Makes the service answer all requests that are out, at once. The service is another one afterwards.
  virtual void GiveUp() = 0;
  // Returns the counts of the target's server so far; nullopt if it does not report them.
  virtual std::optional<infer::PhaseTotals> Statistics() = 0;
  // Returns the calls so far by server; empty if there is only one.
  virtual std::vector<infer::ServerCalls> Calls() const { return {}; }
  virtual std::map<std::string, std::string> Libraries() const { return {}; }
  // Whether it is given pixels in the place of its input: UINT8, rows of pixels of all channels.
  virtual bool takes_pixels() const { return false; }
  // Puts the requests into the form in which they are sent, once.
  virtual Status Prepare(Requests& requests) = 0;
};

// Opens the target that `load` names. kInvalidArgument names options that do not fit together; other errors
// are those of asking the server or of opening the model. `load` and `clock` must outlive it.
Result<std::unique_ptr<Target>> OpenTarget(const LoadOptions& load, const Clock& clock, int most_in_flight);
Result<std::unique_ptr<Target>> OpenRemoteTarget(const LoadOptions& load, const std::string& url,
                                                 const Clock& clock);
Result<std::unique_ptr<Target>> OpenPlainTarget(const LoadOptions& load, const Clock& clock);
Result<std::unique_ptr<Target>> OpenLocalTarget(const LoadOptions& load, const Clock& clock,
                                                int most_in_flight);

// Makes a URL of perf_analyzer's -m NAME -u HOST:PORT -i PROTOCOL -x VERSION.
Result<std::string> UrlOf(const LoadOptions& load);

}  // namespace weir::load
