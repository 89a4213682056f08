#include "infer/several.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "infer/server_chooser.h"

namespace weir::infer {
namespace {

// The prepared forms of one request, one for each server.
struct PreparedSeveral final : PreparedRequest {
  std::vector<std::shared_ptr<const PreparedRequest>> forms;
};

// Whether another server may be asked. The server has not answered, or has not begun.
bool MayMove(const Error& error) {
  return error.code == ErrorCode::kIo || error.code == ErrorCode::kOverloaded;
}

bool SameTensors(const ModelInfo& a, const ModelInfo& b) {
  return a.inputs == b.inputs && a.outputs == b.outputs && a.max_batch == b.max_batch;
}

class Several final : public Endpoint {
 public:
  Several(Balance balance, std::vector<OneServer> servers, const Clock& clock)
      : clock_(clock),
        servers_(std::move(servers)),
        may_move_(servers_.size() > 1 || servers_.front().is_several),
        chooser_(balance, servers_.size()),
        counts_(servers_.size()) {}
  ~Several() override;

  void Submit(Call call) override;
  Duration Drive(Instant until, Duration awake) override {
    return servers_.front().endpoint->Drive(until, awake);
  }
  std::shared_ptr<const PreparedRequest> Prepare(const Request& request, const RequestForm& form) override;
  Result<std::vector<std::string>> Models() override;
  Result<ModelInfo> Info(const std::string& model, const std::string& version) override;
  Result<std::vector<std::string>> Extensions() override;
  Result<PhaseTotals> Statistics(const std::string& model, const std::string& version) override;
  Status RegisterRegion(const std::string& name, const std::string& key, uint64_t byte_size) override;
  Status UnregisterRegion(const std::string& name) override;
  std::vector<ServerCalls> Calls() const override EXCLUDES(mutex_);

 private:
  // A call on its way: what is kept so that it can be sent again.
  struct Sent {
    Request request;
    Completion completion;
    bool again = false;
  };
  void SendTo(size_t server, std::shared_ptr<Sent> sent, const Times& times);
  void Ended(size_t server, std::shared_ptr<Sent> sent, Result<Response> result, const Times& times)
      EXCLUDES(mutex_);
  std::optional<size_t> NextAfter(size_t server, const Result<Response>& result, Sent& sent) EXCLUDES(mutex_);

  const Clock& clock_;
  std::vector<OneServer> servers_;
  const bool may_move_;
  mutable Mutex mutex_;
  CondVar sent_;
  ServerChooser chooser_ GUARDED_BY(mutex_);
  struct Counts {
    uint64_t answered = 0, failed = 0, moved = 0;
  };
  std::vector<Counts> counts_ GUARDED_BY(mutex_);
  int sending_ GUARDED_BY(mutex_) = 0;  // calls that are handed to another server just now
  bool stopping_ GUARDED_BY(mutex_) = false;
};

Several::~Several() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    while (sending_ > 0) sent_.Wait(mutex_);
  }
  for (OneServer& server : servers_) server.endpoint.reset();  // answers what is left
}

void Several::Submit(Call call) {
  auto sent = std::make_shared<Sent>();
  sent->request = std::move(call.request);
  sent->completion = std::move(call.completion);
  size_t server = 0;
  {
    MutexLock lock(mutex_);
    server = chooser_.Choose(clock_.Now());
  }
  SendTo(server, std::move(sent), call.times);
}

void Several::SendTo(size_t server, std::shared_ptr<Sent> sent, const Times& times) {
  Call call{.request = sent->request, .completion = {}, .times = times};
  if (const auto* prepared = static_cast<const PreparedSeveral*>(sent->request.prepared.get()))
    call.request.prepared = prepared->forms[server];
  call.completion =
      Completion([this, server, sent = std::move(sent)](Result<Response> result, const Times& ended) mutable {
        Ended(server, std::move(sent), std::move(result), ended);
      });
  servers_[server].endpoint->Submit(std::move(call));
}

// Books the end of a call at `server`. Returns the server that gets it next; nullopt if the caller gets the
// result.
std::optional<size_t> Several::NextAfter(size_t server, const Result<Response>& result, Sent& sent) {
  using End = ServerChooser::End;
  const Instant now = clock_.Now();
  const bool lost = !result && result.error().code == ErrorCode::kIo;
  MutexLock lock(mutex_);
  chooser_.Ended(server, result ? End::kAnswered : lost ? End::kLost : End::kFailed, now);
  Counts& counts = counts_[server];
  if (!result && MayMove(result.error()) && may_move_ && !sent.again && !stopping_) {
    sent.again = true;
    counts.moved += 1;
    sending_ += 1;
    return chooser_.Choose(now, server);
  }
  (result ? counts.answered : counts.failed) += 1;
  return std::nullopt;
}

void Several::Ended(size_t server, std::shared_ptr<Sent> sent, Result<Response> result, const Times& times) {
  const std::optional<size_t> next = NextAfter(server, result, *sent);
  if (!next) return sent->completion.Answer(std::move(result), times);
  SendTo(*next, std::move(sent), {.planned = times.planned, .sent = times.sent});
  MutexLock lock(mutex_);
  sending_ -= 1;
  sent_.NotifyAll();
}

std::shared_ptr<const PreparedRequest> Several::Prepare(const Request& request, const RequestForm& form) {
  auto prepared = std::make_shared<PreparedSeveral>();
  for (const OneServer& server : servers_) {
    auto one = server.endpoint->Prepare(request, form);
    if (!one) return nullptr;
    prepared->forms.push_back(std::move(one));
  }
  return prepared;
}

Result<std::vector<std::string>> Several::Models() {
  std::optional<std::vector<std::string>> common;
  for (const OneServer& server : servers_) {
    const auto names = TRY_CONTEXT(server.endpoint->Models(), server.name);
    if (!common) common = names;
    std::erase_if(*common, [&](const auto& name) { return std::ranges::find(names, name) == names.end(); });
  }
  return *std::move(common);
}

Result<ModelInfo> Several::Info(const std::string& model, const std::string& version) {
  std::optional<ModelInfo> first;
  for (const OneServer& server : servers_) {
    auto info = TRY_CONTEXT(server.endpoint->Info(model, version), server.name);
    if (!first) {
      first = std::move(info);
    } else if (!SameTensors(*first, info)) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("model {} at {} has other inputs, outputs or another largest batch than at {}: "
                              "give all servers the same model",
                              model, server.name, servers_.front().name));
    }
  }
  return *std::move(first);
}

// Those that all of them have.
Result<std::vector<std::string>> Several::Extensions() {
  std::optional<std::vector<std::string>> common;
  for (const OneServer& server : servers_) {
    const auto names = TRY_CONTEXT(server.endpoint->Extensions(), server.name);
    if (!common) common = names;
    std::erase_if(*common, [&](const auto& name) { return std::ranges::find(names, name) == names.end(); });
  }
  return *std::move(common);
}

Result<PhaseTotals> Several::Statistics(const std::string& model, const std::string& version) {
  PhaseTotals sum;
  for (const OneServer& server : servers_)
    sum += TRY_CONTEXT(server.endpoint->Statistics(model, version), server.name);
  return sum;
}

Status Several::RegisterRegion(const std::string& name, const std::string& key, uint64_t byte_size) {
  for (const OneServer& server : servers_) {
    const Status known = server.endpoint->RegisterRegion(name, key, byte_size);
    if (!known) return Context(server.name, known.error());
  }
  return {};
}

Status Several::UnregisterRegion(const std::string& name) {
  Status status;
  for (const OneServer& server : servers_) {
    const Status forgotten = server.endpoint->UnregisterRegion(name);
    if (!forgotten && status) status = Context(server.name, forgotten.error());
  }
  return status;
}

std::vector<ServerCalls> Several::Calls() const {
  std::vector<ServerCalls> calls;
  if (servers_.front().is_several) {
    calls = servers_.front().endpoint->Calls();
    uint64_t moved = 0;
    {
      MutexLock lock(mutex_);
      moved = counts_.front().moved;
    }
    for (ServerCalls& each : calls) {  // beyond those that were sent again the caller saw the error
      const uint64_t seen = each.moved - std::min(each.moved, moved);
      moved -= each.moved - seen;
      each.moved -= seen;
      each.failed += seen;
    }
    return calls;
  }
  MutexLock lock(mutex_);
  for (size_t i = 0; i < servers_.size(); ++i) {
    calls.push_back({.server = servers_[i].name,
                     .answered = counts_[i].answered,
                     .failed = counts_[i].failed,
                     .moved = counts_[i].moved});
  }
  return calls;
}

}  // namespace

std::unique_ptr<Endpoint> MakeSeveral(Balance balance, std::vector<OneServer> servers, const Clock& clock) {
  return std::make_unique<Several>(balance, std::move(servers), clock);
}

}  // namespace weir::infer
