// Rules that both clients follow.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "oip/client.h"
#include "oip/infer_rules.h"

namespace weir::oip {

// When the answer of a call is of no use any more.
inline std::optional<Instant> DueOf(const infer::Call& call, const http::ClientOptions& options,
                                    const Clock& clock) {
  const auto deadline = call.request.deadline;
  if (options.timeout.count() == 0) return deadline;
  const Instant limit = call.times.sent.value_or(clock.Now()) + options.timeout;
  return deadline ? std::min(*deadline, limit) : limit;
}

// The treatment of an inference's response.
struct Wanted {
  infer::RequestForm::Outputs outputs = infer::RequestForm::Outputs::kRead;
  bool durations = false;   // they were asked for
  bool in_regions = false;  // outputs lie there, and not every server says so in its answer

  // Only that the answer is whole.
  bool nothing() const { return outputs == infer::RequestForm::Outputs::kPassOver && !durations; }
};

// A split that some answers are missing from would be one of other requests.
inline Result<infer::Response> WithDurations(Result<infer::Response> answer, const Wanted& wanted) {
  if (!answer || !wanted.durations || answer->durations) return answer;
  return Fail(ErrorCode::kCorrupt,
              fmt::format("it was asked for its durations ({}) and tells none", kDurations));
}

// How long what is not an inference may take.
inline Duration QuestionTime(const http::ClientOptions& options) {
  return options.timeout.count() > 0 ? Duration(options.timeout) : Duration(30s);
}

// An answer that cannot be read is the server's fault, not the caller's, whatever is wrong with it.
template <typename T>
Result<T> Readable(Result<T> answer, const std::string& address) {
  if (answer) return answer;
  return Fail(ErrorCode::kCorrupt, fmt::format("the answer of {}: {}", address, answer.error().message));
}

}  // namespace weir::oip
