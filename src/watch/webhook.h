// Events to a web server, without a wait on the threads that make them.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "object/transport.h"
#include "watch/webhook_queue.h"

namespace weir::watch {

// Thread-safe. A thread "webhook" posts the events as JSON, up to 100 in a request, one request at a time.
class Webhook {
 public:
  // kInvalidArgument unless `url` is http://... or https://.... `clock` must outlive it.
  static Result<std::unique_ptr<Webhook>> Create(const std::string& url, const Clock& clock);
  // As Create, with this transport and policy.
  Webhook(std::string url, std::unique_ptr<object::Transport> transport, WebhookQueue::Options options,
          const Clock& clock);
  // Gives up what waits.
  ~Webhook();

  void Add(const results::WatchEvent& event);
  // Sends what waits, for at most `patience`; gives up the rest. No Add afterwards.
  results::WatchResult::Webhook Finish(Duration patience);

 private:
  void Work(const std::stop_token& stop);
  void Post(const std::vector<results::WatchEvent>& events);

  const std::string url_;
  const Clock& clock_;
  const std::unique_ptr<object::Transport> transport_;  // its Wake by all, the rest by the thread alone
  mutable Mutex mutex_;
  CondVar idle_;
  WebhookQueue queue_ GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace weir::watch
