#include "cluster/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/short_slice.h"
#include "base/text.h"
#include "base/thread.h"
#include "cluster/handshake.h"
#include "cluster/user_token.h"

namespace weir::cluster {
namespace {

constexpr Duration kLook = 50ms;
constexpr Duration kGrace = 15s;                                // of a call that was asked to end
constexpr size_t kMostNameBytes = 200, kMostFaultBytes = 4000;  // of an agent's words

std::unexpected<Error> LostError(const std::string& text) { return Fail(ErrorCode::kIo, text); }

// An agent's own words, for a line of a terminal.
std::string Plain(const std::string& text) { return CutToOneLine(EscapeForTerminal(text), kMostNameBytes); }

}  // namespace

Cluster::Cluster(int world, const Clock& clock)
    : world_(world),
      clock_(clock),
      roster_(world),
      barrier_(world),
      agents_(static_cast<size_t>(world)),
      readers_(static_cast<size_t>(world)) {
  beat_ = StartThread("cluster-beat", [this](const std::stop_token& over) { Beat(over); });
}

Cluster::~Cluster() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  TellAll(word::Bye());
  beat_.request_stop();
  for (const Agent& agent : agents_)
    if (agent.connection) agent.connection->Close();
}

Status Cluster::Add(std::unique_ptr<Connection> connection, const std::string& name, std::optional<int> rank,
                    Instant until) {
  auto word = TRY(connection->Receive(until));
  if (!word) return Fail(ErrorCode::kDeadline, "it does not say hello in time: another run may be using it");
  RankTurns turns;
  const auto turn = TRY(turns.Take(*std::move(word)));
  const auto* hello = std::get_if<word::Hello>(&turn);
  if (hello == nullptr) return Fail(ErrorCode::kCorrupt, "its first word is not \"hello\"");
  if (!rank) rank = hello->rank;
  Result<int> joined = 0;
  {
    const MutexLock lock(mutex_);
    joined = roster_.Join(name.empty() ? Plain(hello->name) : name, rank, hello->world, clock_.Now());
    if (joined) {
      Agent& agent = agents_[static_cast<size_t>(*joined)];
      agent.build = Plain(hello->build);
      agent.turns = turns;
    }
  }
  if (!joined) {
    (void)connection->Send(word::Refuse{.why = joined.error().message});
    return std::unexpected(joined.error());
  }
  connection->AllowLargeMessages();
  const Status sent = connection->Send(word::Welcome{.rank = *joined, .world = world_});
  {
    const MutexLock lock(mutex_);
    agents_[static_cast<size_t>(*joined)].connection = std::move(connection);
    if (!sent) LoseLocked(*joined, sent.error().message);
  }
  TRY_STATUS(sent);
  readers_[static_cast<size_t>(*joined)] = StartThread(
      fmt::format("cluster-{}", *joined), [this, r = *joined](const std::stop_token&) { Read(r); });
  return {};
}

void Cluster::FreeLost() {
  for (int rank = 0; rank < world_; ++rank) {
    const auto is_lost = [&] {
      const MutexLock lock(mutex_);
      return roster_.hosts()[static_cast<size_t>(rank)].lost.has_value();
    };
    if (!is_lost()) continue;
    readers_[static_cast<size_t>(rank)] = std::jthread();  // which ends with its connection
    const MutexLock lock(mutex_);
    roster_.Free(rank);
    agents_[static_cast<size_t>(rank)].connection.reset();
  }
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
  std::shared_ptr<Connection> connection;
  {
    const MutexLock lock(mutex_);
    connection = agents_[static_cast<size_t>(rank)].connection;
  }
  while (true) {
    auto word = connection->Receive(clock_.Now() + kPatience);
    const Instant now = clock_.Now();
    if (!word) return Lose(rank, word.error().message);
    {
      const MutexLock lock(mutex_);
      if (closing_ || roster_.hosts()[static_cast<size_t>(rank)].lost) return;
    }
    if (!*word) continue;
    if (const Status taken = Take(rank, **std::move(word), now); !taken)
      return Lose(rank, taken.error().message);
  }
}

Status Cluster::Take(int rank, Word word, Instant now) {
  std::vector<StepBarrier::Release> releases;
  {
    const MutexLock lock(mutex_);
    roster_.Heard(rank, now);
    Agent& agent = agents_[static_cast<size_t>(rank)];
    RankTurns::Turn turn = TRY(agent.turns.Take(std::move(word)));
    if (const auto* pong = std::get_if<word::Pong>(&turn)) {
      agent.pong = {Instant(Duration(pong->at)), now};
    } else if (auto* answer = std::get_if<word::Answer>(&turn)) {
      agent.answer = std::move(answer->payload);
    } else if (auto* fault = std::get_if<word::Fault>(&turn)) {
      agent.answer = Fail(fault->code, CutMiddle(fault->message, kMostFaultBytes));
    } else if (const auto* arrive = std::get_if<word::Arrive>(&turn)) {
      releases = TRY(barrier_.Arrive(rank, arrive->step, arrive->last, now));
    }
    changed_.NotifyAll();
  }
  for (const StepBarrier::Release& release : releases) Tell(release, rank);
  return {};
}

// The rank that came last waits least: it is told last.
void Cluster::Tell(const StepBarrier::Release& release, int last) {
  for (int i = 0; i < world_; ++i) {
    const int to = (last + 1 + i) % world_;
    const auto& agent = agents_[static_cast<size_t>(to)];
    const Status sent =
        agent.connection->Send(word::Release{.step = release.step,
                                             .last = release.last,
                                             .waited_ns = release.waited[static_cast<size_t>(to)].count()});
    if (!sent) Lose(to, sent.error().message);
  }
}

void Cluster::Lose(int rank, const std::string& why) {
  {
    const MutexLock lock(mutex_);
    if (closing_) return;
    LoseLocked(rank, why);
  }
  TellAll(word::Stop());
}

void Cluster::LoseLocked(int rank, const std::string& why) {
  roster_.Lose(rank, why);
  Agent& agent = agents_[static_cast<size_t>(rank)];
  if (agent.turns.called()) {
    agent.turns.Forget();
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
      TellAll(word::Beat());
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
    if (any) TellAll(word::Stop());
    SleepUntil(std::min(next, now + 2 * kLook));
  }
}

std::vector<std::shared_ptr<Connection>> Cluster::Live() {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Connection>> live;
  for (size_t i = 0; i < agents_.size(); ++i)
    if (agents_[i].connection && !roster_.hosts()[i].lost) live.push_back(agents_[i].connection);
  return live;
}

void Cluster::TellAll(const Word& word) {
  for (const auto& connection : Live()) (void)connection->Send(word);
}

Result<ClockOffset> Cluster::FindOffset(int rank) {
  Agent& agent = agents_[static_cast<size_t>(rank)];
  OffsetEstimator estimator;
  for (int i = 0; i < OffsetEstimator::kRoundTrips; ++i) {
    int64_t n = 0;
    {
      const MutexLock lock(mutex_);
      n = agent.turns.Ping();
      agent.pong.reset();
    }
    const Instant sent = clock_.Now();
    const Status asked = agent.connection->Send(word::Ping{.n = n});
    if (!asked) Lose(rank, asked.error().message);
    const MutexLock lock(mutex_);
    while (!agent.pong) {
      if (clock_.Now() >= sent + kPatience) LoseLocked(rank, "it answers no ping");
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
      const auto waits = [](const Agent& agent) { return agent.turns.called(); };
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
    TellAll(word::Stop());
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
      if (!lost) agent.turns.Call(id);
      connections.push_back(lost ? nullptr : agent.connection.get());
    }
  }
  for (int rank = 0; rank < world_; ++rank) {
    const auto at = static_cast<size_t>(rank);
    if (connections[at] == nullptr) continue;
    const Status sent =
        connections[at]->Send(word::Call{.id = id, .verb = verb, .payload = std::move(requests[at])});
    if (!sent) Lose(rank, sent.error().message);
  }
  const bool all = Await(stop);
  const MutexLock lock(mutex_);
  std::vector<Result<Message>> answers;
  for (int rank = 0; rank < world_; ++rank) {
    Agent& agent = agents_[static_cast<size_t>(rank)];
    if (!all && agent.turns.called())
      LoseLocked(rank, fmt::format("it did not end within {:g} s", Seconds(kGrace)));
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
    if (hosts[rank].build != hosts[0].build) text += ", another build: " + hosts[rank].build;
    text += "\n";
  }
  return text;
}

Result<std::string> TokenFor(const Address& address, const std::string& given) {
  if (!given.empty()) return given;
  if (IsLoopback(address.host)) return UserToken();
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
    const std::string name = hosts[rank].ToString(), its_token = TRY(TokenFor(hosts[rank], token));
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped while agents were called");
    UniqueFd fd = TRY_CONTEXT(Connect(hosts[rank], until, clock), "the agent at");
    auto connection = TRY_CONTEXT(Connection::Open(std::move(fd), Side::kCaller, its_token, until, clock),
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
  Handshakes handshakes(TRY(TokenFor(listen, token)), Handshake::Until::kFirstMessage, kHandshake, clock);
  const UniqueFd socket = TRY(Listen(listen));
  auto made = std::make_unique<Cluster>(world, clock);
  const Instant until = clock.Now() + timeout;
  Error last;
  while (!made->complete()) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped while agents were awaited");
    const Instant now = clock.Now();
    if (now >= until)
      return Fail(ErrorCode::kDeadline,
                  fmt::format("ranks {} did not come to {} within {:g} s{}", fmt::join(made->Missing(), ", "),
                              listen.ToString(), Seconds(timeout),
                              last.message.empty() ? "" : "; the last refusal: " + last.message));
    auto connection = TRY(handshakes.Next(socket.get(), std::min(until, now + 2 * kLook)));
    if (const auto refusals = handshakes.TakeRefusals(); refusals.count > 0) last = refusals.last;
    if (connection == nullptr) continue;
    made->FreeLost();
    // Its hello is there.
    if (const Status added = made->Add(std::move(connection), "", std::nullopt, now + kHandshake); !added)
      last = added.error();
  }
  TRY_STATUS(made->Synchronise());
  return made;
}

}  // namespace weir::cluster
