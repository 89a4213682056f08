#include "object/request_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "object/content_range.h"
#include "object/header_rules.h"
#include "object/xml.h"

namespace weir::object {
namespace {

constexpr Duration kIdle = 1h, kLongestAskedFor = 30s;

std::string HeaderOf(const HttpResponse& response, std::string_view name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? "" : found->second;
}

// The code of S3's error document: "NoSuchKey".
std::string CodeOf(const HttpResponse& response) {
  constexpr size_t kMostErrorBytes = size_t{64} << 10;
  if (response.body.size() > kMostErrorBytes || !response.body.text().contains("<Error>")) return "";
  const auto texts = ParseXml(response.body.text());
  return texts ? CutToOneLine(EscapeForTerminal(FindText(*texts, "Error/Code")), 80) : "";
}

bool IsRefusal(int status) { return status == 503 || status == 429; }

bool MayPass(int status, std::string_view code) {
  return status == 408 || status == 429 || status >= 500 || code == "RequestTimeout" ||
         code == "RequestTimeTooSkewed" || code == "SlowDown" || code == "InternalError";
}

// Seconds of the header Retry-After.
std::optional<Duration> RetryAfter(const HttpResponse& response) {
  const std::string text = HeaderOf(response, "retry-after");
  int seconds = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size() || seconds < 0)
    return std::nullopt;
  return std::min<Duration>(std::chrono::seconds(seconds), kLongestAskedFor);
}

ErrorCode CodeOfStatus(int status) {
  if (status == 404 || status == 410) return ErrorCode::kNotFound;
  if (status == 412) return ErrorCode::kCorrupt;
  if (IsRefusal(status)) return ErrorCode::kOverloaded;
  return status >= 300 && status < 500 ? ErrorCode::kInvalidArgument : ErrorCode::kIo;
}

std::string StatusText(int status, std::string_view code) {
  const std::string shown = code.empty() ? std::to_string(status) : fmt::format("{} {}", status, code);
  if (code == "ExpiredToken" || code == "ExpiredTokenException" || code == "TokenRefreshRequired")
    return fmt::format("the server answered {}: the credentials have expired, renew them", shown);
  if (status == 403 || status == 401)
    return fmt::format("the server answered {}: these credentials may not do this", shown);
  if (status == 404) return fmt::format("not there ({})", shown);
  if (status == 412) return "the object was changed while it was read";
  if (status >= 300 && status < 400)
    return fmt::format("the server answered {}: set AWS_REGION to the bucket's", shown);
  return fmt::format("the server answered {}", shown);
}

}  // namespace

RequestLoop::RequestLoop(Transport& transport, RequestBuilder& builder, const Clock& clock, Options options)
    : transport_(transport),
      builder_(builder),
      clock_(clock),
      options_(options),
      random_(options.seed.Stream("retries").MakeRandom()),
      depth_(options.depth) {}

void RequestLoop::Submit(Operation operation) {
  ++counts_.operations;
  open_[++last_id_].operation = std::move(operation);
  waiting_.push_back(last_id_);
}

Instant RequestLoop::Step() {
  const Instant now = clock_.Now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto [id, timer] = timers_.begin()->second;
    timers_.erase(timers_.begin());
    const auto found = open_.find(id);
    if (found == open_.end()) continue;
    if (timer == Timer::kRetry) {
      waiting_.push_front(id);
    } else {
      HedgeIfQuiet(id, now);
    }
  }
  while (!waiting_.empty() && in_flight_ < depth_.limit()) {
    const uint64_t id = waiting_.front();
    waiting_.pop_front();
    if (open_.contains(id)) Send(id, false);
  }
  return timers_.empty() ? now + kIdle : timers_.begin()->first;
}

// While bytes come, a second request would only take its share of the link from the first.
void RequestLoop::HedgeIfQuiet(uint64_t id, Instant now) {
  const Open& open = open_.at(id);
  const auto delay = hedge_.Delay();
  if (open.attempts.size() != 1 || !delay) return;
  const Attempt& attempt = open.attempts.begin()->second;
  const Instant quiet_since = transport_.LastBytes(attempt.transfer).value_or(attempt.sent);
  if (now - quiet_since < *delay) {
    timers_.insert({quiet_since + *delay, {id, Timer::kHedge}});
  } else if (hedge_.TakeHedge()) {
    ++counts_.hedges;
    Send(id, true);
  }
}

void RequestLoop::Send(uint64_t id, bool is_hedge) {
  Open& open = open_.at(id);
  Result<HttpRequest> request = builder_.Build(open.operation);
  if (request) {
    if (const Status fits = CheckRequest(*request); !fits)
      request = Context(builder_.NameOf(open.operation), fits.error());
  }
  if (!request) {
    if (!is_hedge) Finish(id, std::unexpected(request.error()));
    return;
  }
  const Instant now = clock_.Now();
  const uint64_t number = ++last_attempt_;
  ++in_flight_;
  ++counts_.requests;
  Attempt& attempt = open.attempts[number];
  attempt = {.sent = now, .is_hedge = is_hedge};
  attempt.transfer = transport_.Start(*std::move(request), [this, id, number](TransportResult result) {
    Ended(id, number, std::move(result));
  });
  if (is_hedge || !options_.hedge || !open.operation.may_hedge) return;
  hedge_.Sent();
  if (const auto delay = hedge_.Delay()) timers_.insert({now + *delay, {id, Timer::kHedge}});
}

// Returns the response if it is whole, of the range asked for, and of the object that was meant.
Result<Response> RequestLoop::Check(const Operation& operation, HttpResponse& response) const {
  const std::string name = builder_.NameOf(operation);
  const auto wrong = [&](const std::string& why) {
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: {}", name, why));
  };
  Response given{
      .status = response.status, .body = std::move(response.body), .etag = HeaderOf(response, "etag")};
  if (!given.etag.empty() && !IsETag(given.etag)) return wrong("the server sent an ETag that is none");
  if (operation.method != "GET" && operation.method != "HEAD") return given;
  const std::string encoding = HeaderOf(response, "content-encoding");
  if (!encoding.empty() && encoding != "identity" && encoding != "aws-chunked") {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: is stored with Content-Encoding {}: store it as it is", name,
                            CutToOneLine(EscapeForTerminal(encoding), 40)));
  }
  if (!operation.etag.empty() && given.etag != operation.etag)
    return wrong("the object was changed while it was read");
  if (operation.method == "HEAD") {
    const std::string length = HeaderOf(response, "content-length");
    int64_t total = 0;
    const auto [stop, error] = std::from_chars(length.data(), length.data() + length.size(), total);
    if (!length.empty() && error == std::errc() && stop == length.data() + length.size() && total >= 0)
      given.total = total;
    return given;
  }
  const auto size = static_cast<int64_t>(given.body.size());
  // By Content-Range and length, not by status: some servers answer 200 to a range.
  if (const std::string header = HeaderOf(response, "content-range"); !header.empty()) {
    const auto range = ParseContentRange(header);
    if (!range || !operation.range || range->first != operation.range->offset || range->size != size ||
        size > operation.range->size)
      return wrong("the server sent another range than was asked for");
    const bool is_end = range->total && range->first + size == *range->total;
    if (size < operation.range->size && !is_end)
      return wrong("the server sent a part of the range asked for");
    given.total = range->total;
  } else {
    if (operation.range && operation.range->offset != 0)
      return wrong("the server gives no ranges: it sent the whole object");
    if (response.status == 206) return wrong("the server sent a part without saying which");
    given.total = size;
  }
  if (operation.size && size != *operation.size)
    return wrong(fmt::format("{} bytes came, and {} were expected", size, *operation.size));
  return given;
}

void RequestLoop::Ended(uint64_t id, uint64_t number, TransportResult result) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  Open& open = found->second;
  const Attempt attempt = open.attempts.at(number);
  open.attempts.erase(number);
  const bool was_full = in_flight_ >= depth_.limit();
  --in_flight_;
  const Instant now = clock_.Now();
  const Operation& operation = open.operation;
  const std::string name = builder_.NameOf(operation);
  if (!result) {
    const TransportFault& fault = result.error();
    const ErrorCode code =
        fault.kind == TransportFault::Kind::kTooLarge ? ErrorCode::kInvalidArgument : ErrorCode::kIo;
    RetryOrFail(id, {code, fmt::format("{}: {}", name, fault.message)},
                fault.kind == TransportFault::Kind::kMayPass, std::nullopt);
    return;
  }
  HttpResponse& response = *result;
  // A range behind the end of an empty object.
  if (response.status == 416 && operation.range && operation.range->offset == 0) {
    const auto range = ParseContentRange(HeaderOf(response, "content-range"));
    if (!range || range->total == 0)
      return Finish(id, Response{.status = 200, .etag = HeaderOf(response, "etag"), .total = 0});
  }
  if (response.status >= 300) {
    const std::string code = CodeOf(response);
    if (IsRefusal(response.status)) {
      ++counts_.refused;
      depth_.Refused(attempt.sent, now);
    }
    if (!open.has_learned && builder_.LearnFrom(operation, response)) {
      open.has_learned = true;
      waiting_.push_front(id);
      return;
    }
    RetryOrFail(
        id, {CodeOfStatus(response.status), fmt::format("{}: {}", name, StatusText(response.status, code))},
        MayPass(response.status, code), RetryAfter(response));
    return;
  }
  const int64_t came = static_cast<int64_t>(response.body.size());
  Result<Response> checked = Check(operation, response);
  if (!checked) {
    // A body of another length than known, with an ETag that fits, was cut on its way.
    const bool cut = operation.size && came < *operation.size && !operation.range;
    return RetryOrFail(id, checked.error(), cut, std::nullopt);
  }
  depth_.Succeeded(was_full);
  budget_.Succeeded();
  if (operation.may_hedge) hedge_.Answered(now - attempt.sent);
  if (attempt.is_hedge) ++counts_.hedges_won;
  Finish(id, std::move(checked));
}

void RequestLoop::RetryOrFail(uint64_t id, Error error, bool may_pass, std::optional<Duration> at_least) {
  Open& open = open_.at(id);
  if (may_pass && !open.attempts.empty()) return;  // the other request may still succeed
  if (!may_pass || open.retries >= options_.retries || !budget_.TakeRetry()) {
    if (may_pass) error.message += fmt::format(" ({} tries)", open.retries + 1);
    return Finish(id, std::unexpected(std::move(error)));
  }
  const Duration wait = Backoff(options_.backoff, open.retries, random_);
  ++open.retries;
  ++counts_.retries;
  timers_.insert({clock_.Now() + std::max(wait, at_least.value_or(0s)), {id, Timer::kRetry}});
}

void RequestLoop::Finish(uint64_t id, Result<Response> result) {
  auto node = open_.extract(id);
  for (const auto& [number, attempt] : node.mapped().attempts) {
    transport_.Cancel(attempt.transfer);
    --in_flight_;
  }
  if (node.mapped().operation.done) node.mapped().operation.done(std::move(result));
}

void RequestLoop::CancelAll() {
  while (!open_.empty()) Finish(open_.begin()->first, Fail(ErrorCode::kCancelled, "stopped"));
  waiting_.clear();
  timers_.clear();
}

}  // namespace weir::object
