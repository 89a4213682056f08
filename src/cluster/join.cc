#include "cluster/join.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "cluster/serve_agent.h"
#include "cluster/socket.h"
#include "cluster/tls.h"
#include "cluster/user_token.h"
#include "launch/process/command.h"
#include "launch/ssh/ssh.h"

namespace weir::cluster {
namespace {

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) c == ',' ? parts.emplace_back() : parts.back() += c;
  return parts;
}

// Whether the entry is of an agent that listens: it ends with a port.
bool Listens(const std::string& entry) {
  const size_t colon = entry.rfind(':');
  return colon != std::string::npos && colon + 1 < entry.size() &&
         entry.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

constexpr char kLocal[] = "local";

std::string NameOf(const std::string& place) { return place == kLocal ? "local" : "ssh " + place; }

// Returns the command of an agent that takes its token from standard input and ends with it. Who starts it
// may read and write what it may.
Result<std::vector<std::string>> AgentCommand(const std::string& place, const std::string& program,
                                              const Clock& clock) {
  const auto listening = [](const std::string& name, const std::string& address) {
    return std::vector<std::string>{name,
                                    "agent",
                                    "--listen",
                                    Address{.host = address, .port = 0}.ToString(),
                                    "--token-file",
                                    "-",
                                    "--once",
                                    "--allow-path",
                                    "/"};
  };
  if (place == kLocal) {
    std::error_code error;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
    if (error) return FailErrno("/proc/self/exe", error.value());
    return listening(self, "127.0.0.1");
  }
  const launch::SshHost host{.destination = place};
  const std::string at = TRY(launch::AddressThere(host, clock));
  std::vector<std::string> arguments = TRY(launch::SshArguments(host));
  arguments.push_back(launch::ToShell(listening(program, at)));
  return arguments;
}

// Returns the first line; what came until `until`, or until the end, where there is none.
std::string ReadLine(int fd, Instant until, const Clock& clock, const std::stop_token& stop) {
  std::string line;
  while (!stop.stop_requested() && !line.contains('\n')) {
    pollfd waited{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waited, 1, launch::PollTimeout(std::min(until, clock.Now() + 100ms), clock));
    if (ready == 0 && clock.Now() >= until) break;
    if (ready <= 0) continue;
    std::array<char, 512> piece;
    const ssize_t count = ::read(fd, piece.data(), piece.size());
    if (count <= 0) break;
    line.append(piece.data(), static_cast<size_t>(count));
  }
  return line;
}

}  // namespace

Result<std::unique_ptr<StartedAgent>> StartedAgent::Start(const std::string& place,
                                                          const std::string& program,
                                                          const std::string& token, Instant until,
                                                          const Clock& clock) {
  std::vector<std::string> arguments = TRY(AgentCommand(place, program, clock));
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return FailErrno("a pipe", errno);
  UniqueFd in_read(in[0]), in_write(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return FailErrno("a pipe", errno);
  const UniqueFd out_read(out[0]);
  UniqueFd out_write(out[1]);
  std::unique_ptr<launch::Tail> words = TRY(launch::Tail::Open());
  launch::Child child = TRY(launch::Child::Spawn({.arguments = std::move(arguments),
                                                  .input = in_read.get(),
                                                  .output = out_write.get(),
                                                  .errors = words->write_end()}));
  in_read = UniqueFd();
  out_write = UniqueFd();
  words->CloseWriteEnd();
  const std::string line = token + "\n";
  if (::write(in_write.get(), line.data(), line.size()) != std::ssize(line))
    return FailErrno(NameOf(place), errno);
  auto agent = std::unique_ptr<StartedAgent>(
      new StartedAgent(std::move(child), std::move(in_write), std::move(words)));
  const auto address = AddressIn(ReadLine(out_read.get(), until, clock, {}));
  if (!address) {
    agent->child_.Kill();
    const std::string said = agent->words_->Text();
    return Fail(ErrorCode::kIo, fmt::format("{}: the agent did not start: {}", NameOf(place),
                                            said.empty() ? "it said nothing" : EscapeBytes(said)));
  }
  agent->address_ = TRY(ParseAddress(*address));
  return agent;
}

Status CheckJoin(const JoinOptions& options) {
  const auto refuse = [](const std::string& why) { return Fail(ErrorCode::kInvalidArgument, why); };
  if (!options.hosts.empty() && !options.rendezvous.empty())
    return refuse("--hosts calls agents and --rendezvous awaits them: give one of them");
  if (!options.rendezvous.empty() && options.agents < 1)
    return refuse("--rendezvous wants --agents N: the number of agents that come there");
  if (options.rendezvous.empty() && options.agents > 0)
    return refuse("--agents says nothing without --rendezvous HOST:PORT");
  if (!options.any() && !options.token_file.empty())
    return refuse("--token-file says nothing without --hosts or --rendezvous");
  return {};
}

Result<JoinedAgents> JoinAgents(const JoinOptions& options, const Clock& clock, const std::stop_token& stop) {
  TRY_STATUS(CheckJoin(options));
  const Duration timeout = FromSeconds(options.timeout_s);
  const Instant until = clock.Now() + timeout;
  std::string token = options.token_file.empty() ? std::string() : TRY(ReadToken(options.token_file));
  JoinedAgents joined;
  if (!options.rendezvous.empty()) {
    joined.cluster =
        TRY(GatherAgents(TRY(ParseAddress(options.rendezvous)), options.agents, token, timeout, clock, stop));
    return joined;
  }
  const std::vector<std::string> entries = Split(options.hosts);
  const bool any_listens = std::ranges::any_of(entries, Listens);
  if (any_listens != std::ranges::all_of(entries, Listens))
    return Fail(ErrorCode::kInvalidArgument,
                "--hosts: either every entry is HOST:PORT of an agent, or none is, and this run starts them "
                "(user@host, local)");
  std::vector<Address> addresses;
  if (!any_listens && token.empty()) token = TRY(MakeToken());
  for (const std::string& entry : entries) {
    if (any_listens) {
      addresses.push_back(TRY_CONTEXT(ParseAddress(entry), "--hosts"));
      continue;
    }
    joined.started.push_back(TRY(StartedAgent::Start(entry, options.program, token, until, clock)));
    addresses.push_back(joined.started.back()->address());
  }
  joined.cluster = TRY(ConnectAgents(addresses, token, timeout, clock, stop));
  return joined;
}

}  // namespace weir::cluster
