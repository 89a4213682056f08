#include "cluster/serve_agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "base/thread.h"
#include "cluster/cluster.h"
#include "cluster/connection.h"
#include "cluster/socket.h"
#include "cluster/tls.h"

namespace weir::cluster {
namespace {

constexpr std::string_view kListening = "listening at ";
constexpr Duration kLook = 200ms, kHandshake = 10s;

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

Status ServeOne(UniqueFd fd, Side side, const std::string& token, const AgentOptions& place,
                const std::function<Verbs()>& make_verbs, const Clock& clock, const std::stop_token& stop) {
  const auto connection = TRY(Connection::Open(std::move(fd), side, token, clock.Now() + kHandshake, clock));
  return ServeSession(*connection, place, make_verbs, clock, stop);
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
  const std::string token = by_input                     ? TRY(FirstLineOfInput())
                            : options.token_file.empty() ? std::string()
                                                         : TRY(ReadToken(options.token_file));
  const Address address = TRY(ParseAddress(options.listen.empty() ? options.rendezvous : options.listen));
  TRY_STATUS(CheckExposure(address, token));
  const AgentOptions place = TRY(PlaceOf(options, environment));

  std::stop_source ended;
  const std::stop_callback pass_on(stop, [&] { ended.request_stop(); });
  std::jthread input;
  if (by_input)
    input = StartThread("agent-input", [ended](const std::stop_token& over) { WatchInput(over, ended); });

  if (!options.rendezvous.empty()) {
    UniqueFd fd = TRY_CONTEXT(Connect(address, clock.Now() + options.timeout, clock), "rank 0 at");
    return ServeOne(std::move(fd), Side::kCaller, token, place, make_verbs, clock, ended.get_token());
  }
  const UniqueFd socket = TRY(Listen(address));
  note(ListeningLine(Address{.host = address.host, .port = TRY(PortOf(socket.get()))}.ToString()));
  while (!ended.stop_requested()) {
    UniqueFd fd = TRY(Accept(socket.get(), clock.Now() + kLook, clock));
    if (!fd.valid()) continue;
    const std::string caller = HostOf(fd.get(), true).value_or("?");
    const Status served =
        ServeOne(std::move(fd), Side::kListener, token, place, make_verbs, clock, ended.get_token());
    if (!served && !ended.stop_requested())
      note(fmt::format("run of {}: {}", caller, served.error().message));
    if (options.once) return served;
  }
  return {};
}

}  // namespace weir::cluster
