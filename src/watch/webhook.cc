#include "watch/webhook.h"

#include <fmt/format.h>

#include <utility>

#include "base/json.h"
#include "base/secrets.h"
#include "base/thread.h"
#include "object/curl_transport.h"

namespace weir::watch {
namespace {

constexpr Duration kRequestTimeout = 10s;
constexpr Duration kLongestDrive = 500ms;
constexpr uint64_t kMostAnswer = 64 << 10;  // bytes of an answer, which says nothing

}  // namespace

Result<std::unique_ptr<Webhook>> Webhook::Create(const std::string& url, const Clock& clock) {
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return Fail(ErrorCode::kInvalidArgument, fmt::format("--webhook {}: give http://... or https://...",
                                                         EscapeBytes(WithoutSecrets(url))));
  return std::make_unique<Webhook>(WithEncodedUser(url), object::MakeCurlTransport(clock, ""),
                                   WebhookQueue::Options{}, clock);
}

Webhook::Webhook(std::string url, std::unique_ptr<object::Transport> transport, WebhookQueue::Options options,
                 const Clock& clock)
    : url_(std::move(url)), clock_(clock), transport_(std::move(transport)), queue_(options) {
  thread_ = StartThread("webhook", [this](const std::stop_token& stop) { Work(stop); });
}

Webhook::~Webhook() {
  thread_.request_stop();
  transport_->Wake();
}

void Webhook::Add(const results::WatchEvent& event) {
  {
    MutexLock lock(mutex_);
    queue_.Add(event, clock_.Now());
  }
  transport_->Wake();
}

results::WatchResult::Webhook Webhook::Finish(Duration patience) {
  const Instant until = clock_.Now() + patience;
  {
    MutexLock lock(mutex_);
    while (!queue_.idle() && clock_.Now() < until) idle_.WaitUntil(mutex_, until);
  }
  thread_.request_stop();
  transport_->Wake();
  if (thread_.joinable()) thread_.join();
  MutexLock lock(mutex_);
  queue_.GiveUp();
  return queue_.counts();
}

void Webhook::Work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<results::WatchEvent> events;
    Instant until = clock_.Now() + kLongestDrive;
    {
      MutexLock lock(mutex_);
      events = queue_.Take(clock_.Now());
      if (const auto next = queue_.NextTake()) until = std::min(until, *next);
    }
    if (!events.empty()) Post(events);
    transport_->Drive(until);
  }
}

void Webhook::Post(const std::vector<results::WatchEvent>& events) {
  transport_->Start({.method = "POST",
                     .url = url_,
                     .headers = {{"Content-Type", "application/json"}},
                     .body = Bytes::Copy(results::WebhookBody(events)),
                     .max_bytes = kMostAnswer,
                     .timeout = kRequestTimeout},
                    [this](const object::TransportResult& answer) {
                      auto outcome = WebhookQueue::Outcome::kFailed;
                      std::string words;
                      if (answer) {
                        outcome = OutcomeOf(answer->status);
                        words = fmt::format("status {}", answer->status);
                      } else {
                        words = answer.error().message;
                        if (answer.error().kind == object::TransportFault::Kind::kFinal)
                          outcome = WebhookQueue::Outcome::kRefused;
                      }
                      MutexLock lock(mutex_);
                      queue_.Ended(outcome, EscapeBytes(WithoutSecrets(words)), clock_.Now());
                      if (queue_.idle()) idle_.NotifyAll();
                    });
}

}  // namespace weir::watch
