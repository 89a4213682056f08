// Shows the bytes of gRPC's sockets to GrpcStreams. The library has no seam between a socket and its frames,
// so the linker puts ours in the place of recvmsg, sendmsg and close (CMakeLists.txt). Where the library is
// linked as a shared one (ThreadSanitizer), nothing is seen.
#pragma once

#include <memory>

#include "oip/grpc/streams.h"

namespace weir::oip {

// Has `streams` see what is read from and written to `fd`, until it is closed. A connection that it refuses
// is shut down, and its reader finds the end. Returns false where the number is too high to be followed.
// Thread-safe.
bool TapSocket(int fd, std::shared_ptr<GrpcStreams> streams);

}  // namespace weir::oip
