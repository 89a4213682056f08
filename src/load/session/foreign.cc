#include "load/session/foreign.h"

#include <fmt/format.h>

namespace weir::load {
namespace {

// perf_analyzer's flags that have another name here, or none.
struct Foreign {
  const char* name;
  const char* instead;
};
constexpr Foreign kForeign[] = {
    {"--binary-search", "--find-peak searches by rate"},
    {"--bls-composing-models", "--server-pid watches the server's processes"},
    {"--collect-metrics", "--metrics-url alone enables them"},
    {"--max-threads", "one thread sends and reads; --io-threads gives it others"},
    {"--model-repository", "name the model's folder as MODEL"},
    {"--profile-export-file", "--samples keeps every request, --json the result"},
    {"--verbose-csv", "-f writes the columns, --json everything"},
    {"--service-kind", "any server of the Open Inference Protocol, or a model in this process"},
    {"--request-parameter", "--priority sends that parameter, and no other is sent"},
    {"--streaming", "gRPC calls are sent one by one"},
    {"--log-frequency", "each level is told when it ends"},
    {"--request-period", "--request-rate-range, or --request-intervals"},
    {"--periodic-concurrency-range", "--concurrency-range plays level after level"},
    {"-t", "--concurrency-range"},
    {"-c", "--concurrency-range with --latency-threshold"},
    {"-d", "--concurrency-range with --latency-threshold"}};

}  // namespace

Status CheckForeign(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    for (const Foreign& foreign : kForeign) {
      if (name == foreign.name)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("it takes no \"{}\" as perf_analyzer does: {}; leave it out", foreign.name,
                                foreign.instead));
    }
  }
  return {};
}

}  // namespace weir::load
