// Completes the options of a server from the ways in which a person may say them.
#pragma once

#include <string>

#include "base/error.h"
#include "serve/server.h"

namespace weir::serve {

// The addresses that the servers listen on, and the servers that are wanted.
struct ListenRequest {
  std::string address = "127.0.0.1";                        // of all
  std::string http_address, grpc_address, metrics_address;  // of one alone; empty: `address`
  bool http = true, grpc = true, metrics = true;
};

// Sets the addresses of `options`, and copies repositories from object stores, which may take a while.
// kUnsupported for polling of an object store; kInvalidArgument for models to load without explicit control.
Status CompleteOptions(const ListenRequest& listen, ServerOptions& options);

}  // namespace weir::serve
