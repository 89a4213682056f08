#include "cluster/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/short_slice.h"
#include "base/thread.h"
#include "cluster/protocol.h"

namespace weir::cluster {
namespace {

constexpr Duration kLook = 50ms;
constexpr Duration kGrace = 15s;  // of a call that was asked to end

std::unexpected<Error> LostError(const std::string& text) { return Fail(ErrorCode::kIo, text); }

}  // namespace

Cluster::Cluster(int world, const Clock& clock)
    : world_(world), clock_(clock), roster_(world), barrier_(world), agents_(static_cast<size_t>(world)) {
  beat_ = StartThread("cluster-beat", [this](const std::stop_token& over) { Beat(over); });
}

Cluster::~Cluster() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  TellAll(MakeMessage(kBye));
  beat_.request_stop();
  for (const Agent& agent : agents_)
    if (agent.connection) agent.connection->Close();
}

Status Cluster::Add(std::unique_ptr<Connection> connection, const std::string& name, std::optional<int> rank,
                    Instant until) {
  const auto hello = TRY(connection->Receive(until));
  if (!hello) return Fail(ErrorCode::kDeadline, "it does not say hello in time: another run may be using it");
  if (KindOf(*hello) != kHello) return Fail(ErrorCode::kCorrupt, "its first message is no hello");
  if (!rank) {
    if (const auto wanted = GetInteger(hello->body, "rank")) rank = static_cast<int>(*wanted);
  }
  const auto said = GetString(hello->body, "name").value_or("");
  const int world = static_cast<int>(GetInteger(hello->body, "world").value_or(0));
  Result<int> joined = 0;
  {
    const MutexLock lock(mutex_);
    joined = roster_.Join(name.empty() ? EscapeBytes(said) : name, rank, world, clock_.Now());
    if (joined) agents_[static_cast<size_t>(*joined)].build = GetString(hello->body, "build").value_or("");
  }
  if (!joined) {
    (void)connection->Send(MakeMessage(kRefuse, {{"why", joined.error().message}}));
    return std::unexpected(joined.error());
  }
  TRY_STATUS(connection->Send(MakeMessage(kWelcome, {{"rank", *joined}, {"world", world_}})));
  {
    const MutexLock lock(mutex_);
    agents_[static_cast<size_t>(*joined)].connection = std::move(connection);
  }
  readers_.push_back(StartThread(fmt::format("cluster-{}", *joined),
                                 [this, r = *joined](const std::stop_token&) { Read(r); }));
  return {};
}

bool Cluster::complete() const {
  const MutexLock lock(mutex_);
  return roster_.complete();
}

std::vector<int> Cluster::Missing() const {
  const MutexLock lock(mutex_);
  return roster_.Missing();
}

std::vector<Host> Cluster::hosts() const {
  const MutexLock lock(mutex_);
  std::vector<Host> hosts;
  for (size_t i = 0; i < agents_.size(); ++i)
    hosts.push_back({.name = roster_.hosts()[i].name,
                     .build = agents_[i].build,
                     .clock = agents_[i].clock,
                     .lost = roster_.hosts()[i].lost});
  return hosts;
}

std::string Cluster::LostText() const {
  const MutexLock lock(mutex_);
  return roster_.LostText();
}

void Cluster::Read(int rank) {
  WantShortSlice();  // the steps of all hosts wait for this thread
  Connection& connection = *agents_[static_cast<size_t>(rank)].connection;
  while (true) {
    auto message = connection.Receive(clock_.Now() + kPatience);
    const Instant now = clock_.Now();
    if (!message) return Lose(rank, message.error().message);
    {
      const MutexLock lock(mutex_);
      if (closing_ || roster_.hosts()[static_cast<size_t>(rank)].lost) return;
    }
    if (*message) Take(rank, **std::move(message), now);
  }
}

void Cluster::Take(int rank, Message message, Instant now) {
  const std::string kind = KindOf(message);
  if (kind == kArrive) return TakeArrival(rank, message, now);
  const MutexLock lock(mutex_);
  roster_.Heard(rank, now);
  Agent& agent = agents_[static_cast<size_t>(rank)];
  if (kind == kPong) {
    agent.pong = {Instant(Duration(GetInteger(message.body, "at").value_or(0))), now};
  } else if ((kind == kAnswer || kind == kFault) && agent.awaited &&
             GetInteger(message.body, "id").value_or(-1) == *agent.awaited) {
    agent.awaited.reset();
    if (kind == kFault) {
      agent.answer = std::unexpected(FaultOf(message));
    } else {
      const auto body = message.body.find("body");
      agent.answer = Message{.body = body == message.body.end() ? Json::object() : *body,
                             .block = std::move(message.block)};
    }
  }
  changed_.NotifyAll();
}

void Cluster::TakeArrival(int rank, const Message& message, Instant now) {
  std::vector<StepBarrier::Release> releases;
  {
    const MutexLock lock(mutex_);
    roster_.Heard(rank, now);
    auto arrived = barrier_.Arrive(rank, GetInteger(message.body, "step").value_or(-1),
                                   message.body.value("last", false), now);
    if (!arrived)
      LoseLocked(rank, arrived.error().message);
    else
      releases = *std::move(arrived);
  }
  for (const StepBarrier::Release& release : releases) Tell(release, rank);
}

// The rank that came last waits least: it is told last.
void Cluster::Tell(const StepBarrier::Release& release, int last) {
  for (int i = 0; i < world_; ++i) {
    const int to = (last + 1 + i) % world_;
    const auto& agent = agents_[static_cast<size_t>(to)];
    const Status sent = agent.connection->Send(
        MakeMessage(kRelease, {{"step", release.step},
                               {"last", release.last},
                               {"waited_ns", release.waited[static_cast<size_t>(to)].count()}}));
    if (!sent) Lose(to, sent.error().message);
  }
}

void Cluster::Lose(int rank, const std::string& why) {
  {
    const MutexLock lock(mutex_);
    if (closing_) return;
    LoseLocked(rank, why);
  }
  TellAll(MakeMessage(kStop));
}

void Cluster::LoseLocked(int rank, const std::string& why) {
  roster_.Lose(rank, why);
  Agent& agent = agents_[static_cast<size_t>(rank)];
  if (agent.awaited) {
    agent.awaited.reset();
    agent.answer = LostError(*roster_.hosts()[static_cast<size_t>(rank)].lost);
  }
  if (agent.connection) agent.connection->Close();
  changed_.NotifyAll();
}

void Cluster::Beat(const std::stop_token& over) {
  Instant next = clock_.Now();
  while (!over.stop_requested()) {
    const Instant now = clock_.Now();
    if (now >= next) {
      TellAll(MakeMessage(kBeat));
      next = now + kHeartbeat;
    }
    bool any = false;
    {
      const MutexLock lock(mutex_);
      for (const int rank : roster_.LoseSilent(now)) {
        LoseLocked(rank, "");
        any = true;
      }
    }
    if (any) TellAll(MakeMessage(kStop));
    SleepUntil(std::min(next, now + 2 * kLook));
  }
}

std::vector<Connection*> Cluster::Live() {
  const MutexLock lock(mutex_);
  std::vector<Connection*> live;
  for (size_t i = 0; i < agents_.size(); ++i)
    if (agents_[i].connection && !roster_.hosts()[i].lost) live.push_back(agents_[i].connection.get());
  return live;
}

void Cluster::TellAll(const Message& message) {
  for (Connection* connection : Live()) (void)connection->Send(message);
}

Result<ClockOffset> Cluster::FindOffset(int rank) {
  Agent& agent = agents_[static_cast<size_t>(rank)];
  OffsetEstimator estimator;
  for (int n = 0; n < OffsetEstimator::kRoundTrips; ++n) {
    const Instant sent = clock_.Now();
    const Status asked = agent.connection->Send(MakeMessage(kPing, {{"n", n}}));
    if (!asked) Lose(rank, asked.error().message);
    const MutexLock lock(mutex_);
    while (!agent.pong) {
      if (roster_.any_lost()) return LostError("lost: " + roster_.LostText());
      changed_.WaitUntil(mutex_, clock_.Now() + kLook);
    }
    estimator.Add(sent, agent.pong->first, agent.pong->second);
    agent.pong.reset();
  }
  return *estimator.Best();
}

Status Cluster::Synchronise() {
  for (int rank = 0; rank < world_; ++rank) {
    const ClockOffset found = TRY(FindOffset(rank));
    const MutexLock lock(mutex_);
    agents_[static_cast<size_t>(rank)].clock = found;
  }
  return {};
}

// Blocks until every call is answered. Returns false if some were not within the grace.
bool Cluster::Await(const std::stop_token& stop) {
  std::optional<Instant> told;
  while (true) {
    bool tell = false;
    {
      const MutexLock lock(mutex_);
      const auto waits = [](const Agent& agent) { return agent.awaited.has_value(); };
      while (std::ranges::any_of(agents_, waits)) {
        const bool early = stop.stop_requested() || roster_.any_lost();
        if (early && !told) {
          tell = true;
          break;
        }
        if (told && clock_.Now() >= *told + kGrace) return false;
        changed_.WaitUntil(mutex_, clock_.Now() + kLook);
      }
    }
    if (!tell) return true;
    told = clock_.Now();
    TellAll(MakeMessage(kStop));
    if (const std::string lost = LostText(); !lost.empty() && on_loss_) std::exchange(on_loss_, {})(lost);
  }
}

std::vector<Result<Message>> Cluster::CallAll(const std::string& verb, std::vector<Message> requests,
                                              const std::stop_token& stop) {
  CHECK(std::ssize(requests) == world_);
  std::vector<Connection*> connections;
  int64_t id = 0;
  {
    const MutexLock lock(mutex_);
    barrier_.Restart();
    id = next_id_++;
    for (int rank = 0; rank < world_; ++rank) {
      Agent& agent = agents_[static_cast<size_t>(rank)];
      const auto& lost = roster_.hosts()[static_cast<size_t>(rank)].lost;
      agent.answer = lost ? std::optional<Result<Message>>(LostError(*lost)) : std::nullopt;
      if (!lost) agent.awaited = id;
      connections.push_back(lost ? nullptr : agent.connection.get());
    }
  }
  for (int rank = 0; rank < world_; ++rank) {
    const auto at = static_cast<size_t>(rank);
    if (connections[at] == nullptr) continue;
    Message call = MakeMessage(kCall, {{"id", id}, {"verb", verb}, {"body", std::move(requests[at].body)}});
    call.block = std::move(requests[at].block);
    if (const Status sent = connections[at]->Send(call); !sent) Lose(rank, sent.error().message);
  }
  const bool all = Await(stop);
  const MutexLock lock(mutex_);
  std::vector<Result<Message>> answers;
  for (int rank = 0; rank < world_; ++rank) {
    Agent& agent = agents_[static_cast<size_t>(rank)];
    if (!all && agent.awaited) LoseLocked(rank, fmt::format("it did not end within {:g} s", Seconds(kGrace)));
    answers.push_back(*std::exchange(agent.answer, std::nullopt));
  }
  return answers;
}

Result<std::vector<Message>> Cluster::CallAll(const std::string& verb, const Message& request,
                                              const std::stop_token& stop) {
  std::vector<Message> answers;
  auto results = CallAll(verb, std::vector<Message>(static_cast<size_t>(world_), request), stop);
  for (size_t rank = 0; rank < results.size(); ++rank) {
    if (!results[rank]) {
      const MutexLock lock(mutex_);
      return Context(fmt::format("{} (rank {})", roster_.hosts()[rank].name, rank), results[rank].error());
    }
    answers.push_back(*std::move(results[rank]));
  }
  return answers;
}

std::string HostsText(const std::vector<Host>& hosts) {
  std::string text;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    text += fmt::format("  rank {}: {}", rank, hosts[rank].name);
    if (const auto& clock = hosts[rank].clock)
      text += fmt::format(", its clock known to within {:.1f} us", Microseconds(clock->error));
    if (hosts[rank].build != hosts[0].build) text += ", another build: " + EscapeBytes(hosts[rank].build);
    text += "\n";
  }
  return text;
}

Status CheckExposure(const Address& address, const std::string& token) {
  if (!token.empty() || IsLoopback(address.host)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} is not of this machine alone: agents then need a token on both sides "
                          "(--token-file FILE), which also encrypts the connection",
                          address.ToString()));
}

Result<std::unique_ptr<Cluster>> ConnectAgents(const std::vector<Address>& hosts, const std::string& token,
                                               Duration timeout, const Clock& clock,
                                               const std::stop_token& stop) {
  auto made = std::make_unique<Cluster>(static_cast<int>(hosts.size()), clock);
  const Instant until = clock.Now() + timeout;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const std::string name = hosts[rank].ToString();
    TRY_STATUS(CheckExposure(hosts[rank], token));
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped while agents were called");
    UniqueFd fd = TRY_CONTEXT(Connect(hosts[rank], until, clock), "the agent at");
    auto connection = TRY_CONTEXT(Connection::Open(std::move(fd), Side::kCaller, token, until, clock),
                                  "the agent at " + name);
    if (const Status added = made->Add(std::move(connection), name, static_cast<int>(rank), until); !added)
      return Context("the agent at " + name, added.error());
  }
  TRY_STATUS(made->Synchronise());
  return made;
}

Result<std::unique_ptr<Cluster>> GatherAgents(const Address& listen, int world, const std::string& token,
                                              Duration timeout, const Clock& clock,
                                              const std::stop_token& stop) {
  constexpr Duration kHandshake = 5s;
  TRY_STATUS(CheckExposure(listen, token));
  const UniqueFd socket = TRY(Listen(listen));
  auto made = std::make_unique<Cluster>(world, clock);
  const Instant until = clock.Now() + timeout;
  Error last;
  while (!made->complete()) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped while agents were awaited");
    if (clock.Now() >= until)
      return Fail(ErrorCode::kDeadline,
                  fmt::format("ranks {} did not come to {} within {:g} s{}", fmt::join(made->Missing(), ", "),
                              listen.ToString(), Seconds(timeout),
                              last.message.empty() ? "" : "; the last refusal: " + last.message));
    UniqueFd fd = TRY(Accept(socket.get(), std::min(until, clock.Now() + 2 * kLook), clock));
    if (!fd.valid()) continue;
    const Instant shaken = clock.Now() + kHandshake;
    auto connection = Connection::Open(std::move(fd), Side::kListener, token, shaken, clock);
    const Status added = connection ? made->Add(*std::move(connection), "", std::nullopt, shaken)
                                    : std::unexpected(connection.error());
    if (!added) last = added.error();
  }
  TRY_STATUS(made->Synchronise());
  return made;
}

}  // namespace weir::cluster
