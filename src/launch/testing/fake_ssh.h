// An ssh program that reaches only this machine.
#pragma once

#include "launch/testing/fake_program.h"

namespace weir::launch::testing {

// It does what ssh and sshd do together: the command is run by a shell in a session of its own, gets standard
// input through a relay, and sees its end when ssh is gone, however it went. A host with "unreachable" in its
// name refuses. It notes the host and the options of each call.
inline constexpr char kFakeSsh[] = R"sh(#!/bin/sh
options=
while [ $# -gt 0 ]; do
  case $1 in
    -o|-p|-i) options="$options $1 $2"; shift 2 ;;
    --) shift; break ;;
    -*) options="$options $1"; shift ;;
    *) break ;;
  esac
done
host=$1
shift
echo "$host$options" >> "$0.calls"
case $host in
  *unreachable*) echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255 ;;
esac
relay=$0.relay.$$
mkfifo "$relay"
exec 3<&0
cat <&3 >"$relay" 2>/dev/null &
relaying=$!
setsid -w sh -c "$*" <"$relay" 3<&- &
wait $!
status=$?
kill $relaying 2>/dev/null
rm -f "$relay"
exit $status
)sh";

class FakeSsh : public FakeProgram {
 public:
  FakeSsh() : FakeProgram("ssh", kFakeSsh) {}
};

}  // namespace weir::launch::testing
