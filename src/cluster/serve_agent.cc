#include "cluster/serve_agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "base/count.h"
#include "base/json.h"
#include "base/thread.h"
#include "cluster/cluster.h"
#include "cluster/connection.h"
#include "cluster/handshake.h"
#include "cluster/socket.h"
#include "cluster/tls.h"

namespace weir::cluster {
namespace {

constexpr std::string_view kListening = "listening at ";
constexpr Duration kLook = 200ms, kHandshake = 10s, kBetweenNotes = 10s;

// Reads the first line of standard input, byte by byte: what follows is not ours.
Result<std::string> FirstLineOfInput() {
  std::string line;
  char c = 0;
  while (line.size() < 4096) {
    const ssize_t count = ::read(STDIN_FILENO, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || c == '\n') break;
    line.push_back(c);
  }
  return CheckToken(line, "standard input");
}

// Asks `ended` to stop when standard input ends.
void WatchInput(const std::stop_token& over, std::stop_source ended) {
  while (!over.stop_requested()) {
    pollfd waited{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&waited, 1, static_cast<int>(kLook / 1ms)) <= 0) continue;
    std::array<char, 256> unused;
    const ssize_t count = ::read(STDIN_FILENO, unused.data(), unused.size());
    if (count == 0 || (count < 0 && errno != EINTR)) {
      ended.request_stop();
      return;
    }
  }
}

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "a host";
  return name.data();
}

Result<AgentOptions> PlaceOf(const ServeAgentOptions& options, const Environment& environment) {
  AgentOptions place{.name = options.name.empty() ? HostName() : options.name,
                     .build = options.build,
                     .rank = {},
                     .world = options.world};
  if (options.rank >= 0) {
    place.rank = options.rank;
  } else if (options.listen.empty()) {  // who listens has the rank that rank 0 gives it
    if (const auto found = TRY(FindRank(environment))) {
      place.rank = found->rank;
      if (place.world == 0) place.world = found->world;
    }
  }
  return place;
}

// Notes callers that were refused: at most once in a while, however many they are.
class RefusalNotes {
 public:
  RefusalNotes(const std::function<void(const std::string& line)>& note, const Clock& clock)
      : note_(note), clock_(clock), next_(clock.Now()) {}

  void Add(Handshakes::Refusals refusals) {
    if (refusals.count > 0) {
      count_ += refusals.count;
      last_ = std::move(refusals.last);
    }
    if (count_ == 0 || clock_.Now() < next_) return;
    note_(count_ == 1 ? "refused " + last_.message
                      : fmt::format("refused {}; the last: {}", Count(count_, "caller"), last_.message));
    count_ = 0;
    next_ = clock_.Now() + kBetweenNotes;
  }

 private:
  const std::function<void(const std::string& line)>& note_;
  const Clock& clock_;
  Instant next_;
  int64_t count_ = 0;
  Error last_;
};

// Goes to rank 0, again where the connection ends before the handshake does: others may crowd it.
Status GoTo(const Address& address, const std::string& token, Duration timeout, const AgentOptions& place,
            const std::function<Verbs()>& make_verbs, const Clock& clock, const std::stop_token& stop) {
  const Instant until = clock.Now() + timeout;
  while (true) {
    UniqueFd fd = TRY_CONTEXT(Connect(address, until, clock), "rank 0 at");
    auto connection = Connection::Open(std::move(fd), Side::kCaller, token,
                                       std::min(until, clock.Now() + kHandshake), clock);
    if (connection) return ServeSession(**connection, place, make_verbs, clock, stop);
    const ErrorCode why = connection.error().code;
    const bool may_pass = why == ErrorCode::kIo || why == ErrorCode::kDeadline;
    if (!may_pass || stop.stop_requested() || clock.Now() + kLook >= until)
      return Context("rank 0 at " + address.ToString(), connection.error());
    SleepUntil(clock.Now() + kLook);
  }
}

// Serves those who call, one after the other.
Status AwaitCallers(int socket, const std::string& token, bool once, const AgentOptions& place,
                    const std::function<Verbs()>& make_verbs,
                    const std::function<void(const std::string& line)>& note, const Clock& clock,
                    const std::stop_token& stop) {
  Handshakes callers(token, Handshake::Until::kEncrypted, kHandshake, clock);
  RefusalNotes refusals(note, clock);
  while (!stop.stop_requested()) {
    const auto connection = TRY(callers.Next(socket, clock.Now() + kLook));
    refusals.Add(callers.TakeRefusals());
    if (connection == nullptr) continue;
    const std::string caller = HostOf(connection->fd(), true).value_or("?");
    const Status served = ServeSession(*connection, place, make_verbs, clock, stop);
    if (!served && !stop.stop_requested())
      note(fmt::format("run of {}: {}", caller, EscapeForTerminal(served.error().message)));
    if (once) return served;
  }
  return {};
}

}  // namespace

std::string ListeningLine(const std::string& address) { return std::string(kListening) + address; }

std::optional<std::string> AddressIn(std::string_view line) {
  const size_t at = line.find(kListening);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + kListening.size());
  return std::string(rest.substr(0, rest.find_first_of(" \r\n")));
}

Status ServeAgent(const ServeAgentOptions& options, const Environment& environment,
                  const std::function<Verbs()>& make_verbs,
                  const std::function<void(const std::string& line)>& note, const Clock& clock,
                  const std::stop_token& stop) {
  if (options.listen.empty() == options.rendezvous.empty())
    return Fail(
        ErrorCode::kInvalidArgument,
        "an agent wants one of --listen HOST:PORT, to be called there, and --rendezvous HOST:PORT, to "
        "go to rank 0 there");
  const bool by_input = options.token_file == "-";
  const std::string given = by_input                     ? TRY(FirstLineOfInput())
                            : options.token_file.empty() ? std::string()
                                                         : TRY(ReadToken(options.token_file));
  const Address address = TRY(ParseAddress(options.listen.empty() ? options.rendezvous : options.listen));
  const std::string token = TRY(TokenFor(address, given));
  const AgentOptions place = TRY(PlaceOf(options, environment));

  std::stop_source ended;
  const std::stop_callback pass_on(stop, [&] { ended.request_stop(); });
  std::jthread input;
  if (by_input)
    input = StartThread("agent-input", [ended](const std::stop_token& over) { WatchInput(over, ended); });

  if (!options.rendezvous.empty())
    return GoTo(address, token, options.timeout, place, make_verbs, clock, ended.get_token());
  const UniqueFd socket = TRY(Listen(address));
  note(ListeningLine(Address{.host = address.host, .port = TRY(PortOf(socket.get()))}.ToString()));
  return AwaitCallers(socket.get(), token, options.once, place, make_verbs, note, clock, ended.get_token());
}

}  // namespace weir::cluster
