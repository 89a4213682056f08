#include "http/http_timeouts.h"

namespace weir::http {
namespace {

using Action = HttpTimeVerdict::Action;

bool TooSlow(const HttpTimeouts& timeouts, const HttpTransfer& transfer, Instant now) {
  const Duration counted = now - transfer.began - timeouts.grace;
  if (counted <= Duration{}) return false;
  return static_cast<double>(transfer.bytes) < static_cast<double>(timeouts.least_rate) * Seconds(counted);
}

HttpTimeVerdict Refuse(std::string_view reason) { return {Action::kRefuse, reason}; }

}  // namespace

HttpTimeVerdict JudgeTime(const HttpTimeouts& timeouts, const HttpActivity& activity, Instant now) {
  const auto passed = [&](Instant since, Duration limit) { return now - since > limit; };
  using Phase = HttpActivity::Phase;
  const HttpTimeVerdict close{Action::kClose, ""};
  const HttpTransfer& transfer = activity.transfer;
  if (activity.spare && activity.phase != Phase::kWorking && activity.phase != Phase::kLingering) {
    if (passed(activity.since, timeouts.spare)) return close;
  }
  switch (activity.phase) {
    case Phase::kIdle:
      if (activity.draining && !activity.spare) return close;
      if (passed(activity.since, timeouts.idle)) return close;
      return {};
    case Phase::kHead:
      if (passed(activity.since, timeouts.header)) return Refuse("the headers took too long to come");
      return {};
    case Phase::kBody:
      if (passed(transfer.last_byte, timeouts.stall)) return Refuse("the body stopped coming");
      if (passed(activity.first_byte, timeouts.request)) return Refuse("the request took too long to come");
      if (TooSlow(timeouts, transfer, now)) return Refuse("the body came too slowly");
      return {};
    case Phase::kWorking:
      return {};
    case Phase::kSending:
      if (passed(transfer.last_byte, timeouts.stall) || TooSlow(timeouts, transfer, now)) return close;
      return {};
    case Phase::kLingering:
      if (passed(activity.since, timeouts.linger)) return close;
      return {};
  }
  return {};
}

}  // namespace weir::http
