// The models that a server serves and the addresses it listens on, as `weir serve --json` writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "results/tensor.h"

namespace weir::results {

struct ServeResult {
  struct Listener {
    int64_t port = 0;
    std::string url;      // as a client on this machine would call it
    std::string address;  // that the server listens on
    bool operator==(const Listener&) const = default;
  };
  struct Model {
    std::string name;  // through EscapeBytes
    std::vector<std::string> versions;
    std::string platform;
    std::vector<Tensor> inputs, outputs;
    bool operator==(const Model&) const = default;
  };
  struct Entry {
    std::string name;  // through EscapeBytes
    std::string version, state, reason;
    bool operator==(const Entry&) const = default;
  };

  bool ready = false;
  std::string not_ready;  // the reason why it is not ready
  int64_t pid = 0;
  std::optional<Listener> http, grpc, metrics;  // nullopt: that server is disabled
  std::vector<Model> models;                    // those that are ready
  std::vector<Entry> index;
  std::string version;
  std::string command;

  Json ToJson() const;
  static Result<ServeResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const ServeResult&) const = default;
};

}  // namespace weir::results
