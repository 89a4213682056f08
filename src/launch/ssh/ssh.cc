#include "launch/ssh/ssh.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "launch/process/command.h"
#include "launch/process/spawn.h"
#include "launch/process/tail.h"

namespace weir::launch {
namespace {

constexpr int kSshFailed = 255;  // ssh's own exit status
constexpr int kFirstPort = 20000, kEndPort = 32768;

bool IsPlain(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c <= ' ' || c == 127; });
}

Status CheckHost(const SshHost& host) {
  const auto bad = [&](const char* what) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("ssh {}: {}; wanted is user@host", EscapeBytes(host.destination), what));
  };
  if (host.destination.empty() || host.Address().empty()) return bad("no host");
  if (host.destination.starts_with('-') || host.Address().starts_with('-'))
    return bad("begins like an option");
  if (!IsPlain(host.destination)) return bad("blanks in a host's name");
  if (host.port < 0 || host.port > 65535) return bad("not a port");
  return {};
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  return text;
}

// Returns the command for the node, quoted for the shell of its login.
Result<std::vector<std::string>> With(const SshHost& host, const std::string& there) {
  std::vector<std::string> arguments = TRY(SshArguments(host));
  arguments.push_back(there);
  return arguments;
}

Result<Output> Run(const SshHost& host, const std::string& there, int input, Duration timeout,
                   const Clock& clock) {
  Output output =
      TRY(RunCommand({.arguments = TRY(With(host, there)), .input = input, .timeout = timeout}, clock));
  if (output.ending.exit_status == kSshFailed) return std::unexpected(SshError(host, output.err));
  return output;
}

}  // namespace

std::string SshHost::Address() const {
  return !address.empty() ? address : destination.substr(destination.rfind('@') + 1);
}

Result<std::vector<std::string>> SshArguments(const SshHost& host) {
  TRY_STATUS(CheckHost(host));
  std::vector<std::string> arguments{"ssh", "-T"};
  for (const std::string& option : host.options) arguments.insert(arguments.end(), {"-o", option});
  const auto seconds = std::max<int64_t>(1, host.connect_timeout / 1s);
  for (const std::string& option :
       {std::string("BatchMode=yes"), fmt::format("ConnectTimeout={}", seconds),
        std::string("ServerAliveInterval=5"), std::string("ServerAliveCountMax=3"),
        std::string("ClearAllForwardings=yes"), std::string("LogLevel=ERROR")})
    arguments.insert(arguments.end(), {"-o", option});
  if (host.port != 0) arguments.insert(arguments.end(), {"-p", fmt::format("{}", host.port)});
  if (!host.identity.empty()) arguments.insert(arguments.end(), {"-i", host.identity});
  arguments.insert(arguments.end(), {"--", host.destination});
  return arguments;
}

Error SshError(const SshHost& host, std::string_view words) {
  return {.code = ErrorCode::kIo,
          .message = fmt::format(
              "ssh {}: {}; \"ssh {} true\" must work from here without a question: a key or "
              "an agent in place, the host's own key known",
              host.destination, words.empty() ? "the connection failed" : EscapeBytes(Trimmed(words)),
              host.destination)};
}

Status CopyOverSsh(const SshHost& host, const CopyOptions& options, const Clock& clock) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path from = fs::canonical(options.from, error);
  if (error) return FailErrno(options.from, error.value());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("a pipe", errno);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const std::unique_ptr<Tail> words = TRY(Tail::Open());
  Child tar = TRY(Child::Spawn(
      {.arguments = {"tar", "-C", from.parent_path().string(), "-chf", "-", "--", from.filename().string()},
       .output = write_end.get(),
       .errors = words->write_end(),
       .parent_death_signal = SIGKILL}));
  write_end = UniqueFd();
  words->CloseWriteEnd();

  const std::string folder = ToShell({options.to_folder});
  const Output output = TRY(Run(host, fmt::format("mkdir -p -- {0} && tar -xof - -C {0}", folder),
                                read_end.get(), options.timeout, clock));
  read_end = UniqueFd();  // a tar that still writes ends now
  const Ending packed = tar.WaitForEnd(clock.Now() + 10s, clock).value_or(Ending{.exit_status = 1});
  const std::string what = fmt::format("copying {} to {}", options.from, host.destination);
  if (output.ending != Ending{})
    return Fail(ErrorCode::kIo, fmt::format("{}: there: {}: {}", what, output.ending.ToString(),
                                            EscapeBytes(Trimmed(output.err))));
  if (packed != Ending{})
    return Fail(ErrorCode::kIo,
                fmt::format("{}: tar: {}: {}", what, packed.ToString(), EscapeBytes(Trimmed(words->Text()))));
  return {};
}

std::vector<int> PortsIn(std::string_view proc_net_tcp) {
  std::vector<int> ports;
  while (!proc_net_tcp.empty()) {
    const std::string_view line = proc_net_tcp.substr(0, proc_net_tcp.find('\n'));
    proc_net_tcp.remove_prefix(std::min(proc_net_tcp.size(), line.size() + 1));
    // "  sl: ADDRESS:PORT ..."
    const size_t number = line.find(": "), colon = line.find(':', number + 2);
    if (number == std::string_view::npos || colon == std::string_view::npos) continue;
    const std::string_view text = line.substr(colon + 1, 4);
    int port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port, 16);
    if (error == std::errc() && end == text.data() + 4) ports.push_back(port);
  }
  return ports;
}

Result<std::string> AddressThere(const SshHost& host, const Clock& clock) {
  if (!host.address.empty()) return host.address;
  // "CLIENT PORT SERVER PORT": sshd(8), ENVIRONMENT
  const Output output = TRY(Run(host, "echo \"$SSH_CONNECTION\"", -1, 60s, clock));
  std::string_view rest = output.out;
  for (int i = 0; i < 2; ++i) rest.remove_prefix(std::min(rest.size(), rest.find(' ') + 1));
  const std::string_view address = rest.substr(0, rest.find(' '));
  const bool is_ipv4 = !address.empty() && address.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_ipv4 ? std::string(address) : host.Address();
}

Result<std::vector<int>> FreePortsOn(const SshHost& host, int count, const Clock& clock) {
  const Output output = TRY(Run(host, "cat /proc/net/tcp /proc/net/tcp6", -1, 60s, clock));
  const std::vector<int> taken = PortsIn(output.out);
  std::vector<int> ports;
  constexpr int kRange = kEndPort - kFirstPort;
  // A place that differs from call to call, so that a port that was just used rests.
  const auto start = static_cast<int>(clock.Now().time_since_epoch() / 1us % kRange);
  for (int i = 0; i < kRange && std::ssize(ports) < count; ++i) {
    const int port = kFirstPort + (start + i) % kRange;
    if (std::ranges::find(taken, port) == taken.end()) ports.push_back(port);
  }
  if (std::ssize(ports) == count) return ports;
  return Fail(ErrorCode::kOverloaded, fmt::format("every port from {} to {} is in use on {}", kFirstPort,
                                                  kEndPort - 1, host.destination));
}

}  // namespace weir::launch
