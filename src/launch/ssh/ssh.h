// Programs and files on another node, by the ssh program of this one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace weir::launch {

// A node, and how it is reached: without a question, by a key or an agent. There a POSIX shell, grep, env and
// tar are used, of whatever make. A value.
struct SshHost {
  std::string destination;           // "user@host", "host", or a name of ~/.ssh/config
  int port = 0;                      // 0: as ssh has it configured
  std::string identity;              // a private key's file; empty: as ssh has it configured
  std::vector<std::string> options;  // "StrictHostKeyChecking=accept-new"; they win over ours
  std::string address;               // where its servers listen and are asked from here; empty: AddressThere
  Duration connect_timeout = 10s;

  std::string Address() const;
};

// "ssh ..." with everything but the command. kInvalidArgument for what ssh would take for an option of its
// own.
Result<std::vector<std::string>> SshArguments(const SshHost& host);

// Copies a file or a folder, with what links in it point to, into a folder there, which is made where it is
// missing; what is there already under the same names is replaced. kNotFound where `from` is not here.
struct CopyOptions {
  std::string from;       // a path here
  std::string to_folder;  // on the node: relative to the login's own, or absolute
  Duration timeout = 600s;
};
Status CopyOverSsh(const SshHost& host, const CopyOptions& options, const Clock& clock);

// The address at which ssh reached the node, which its servers listen on: `destination` may be a name of
// ~/.ssh/config, and a name is no address of an interface. The host in `destination` where the node does not
// tell, or tells an IPv6 address, which no URL here holds.
Result<std::string> AddressThere(const SshHost& host, const Clock& clock);

// TCP ports that nobody has on that node, below the range from which its kernel takes those of connections.
Result<std::vector<int>> FreePortsOn(const SshHost& host, int count, const Clock& clock);

// The parts that only reckon.

// The ports in the text of /proc/net/tcp and /proc/net/tcp6.
std::vector<int> PortsIn(std::string_view proc_net_tcp);
// An error for how ssh itself ended, with the remedy.
Error SshError(const SshHost& host, std::string_view words);

}  // namespace weir::launch
