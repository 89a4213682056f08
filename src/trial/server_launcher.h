// The servers of a study's trials: each started anew, and gone after its trial.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "launch/balancer/balancer.h"
#include "launch/network/network_link.h"
#include "launch/network/variable_rate.h"
#include "launch/server.h"
#include "model/model.h"
#include "trial/setting.h"

namespace weir::trial {

// A server that is ready, or several, and the way to them. Ends with this object.
struct RunningServer {
  std::optional<launch::StartedServer> started;   // nothing for one that runs anyway
  std::vector<launch::StartedServer> others;      // with the same model, beside the first
  std::optional<launch::StartedServer> balancer;  // in front of all
  launch::NetworkLink* link = nullptr;            // it is behind; null: none of ours
  std::unique_ptr<launch::VariableRate> rate;     // of the link, where it varies; its thread ends first
  std::string model_url;                          // as clients name the model there
  std::string metrics_url;              // of weir's own server; empty: not known, or there are several
  bool is_own = false;                  // weir's: it ends with status 0 when it is told to
  bool is_watched = false;              // its processes are on this machine: started->launched->pid()
  std::optional<launch::SshHost> host;  // they are on this one

  std::vector<int> pids() const;          // to watch; empty where they are not on this machine
  std::vector<std::string> urls() const;  // of each of several servers or of those behind a balancer
  std::string Command() const;            // starts all by hand, a line for each; empty where there is none
};

// Starts servers on this machine. One thread at a time; running servers must not outlive it.
class ServerLauncher {
 public:
  struct Options {
    std::string program;                   // this program, for the servers that need no container
    std::string image = "localhost/weir";  // of weir's server in a container
    std::string folder;                    // for the model repositories that are served
    std::optional<launch::SshHost> host;   // the second node; nothing: one is made on this machine
    Duration start_timeout = 60s;
  };
  // `clock` must outlive it.
  ServerLauncher(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

  // Starts the server of that setting and waits until it is ready. `seed` decides how a varying link goes.
  // kUnsupported, with the remedy, for what this machine cannot do. REQUIRES: not kInProcess.
  Result<RunningServer> Start(const Setting& setting, const model::Model& model, Seed seed);

  // Whether this machine can start the server of that setting at all: containers and links are tried, once
  // each. kUnsupported as Start.
  Status Check(const Setting& setting);

 private:
  Result<launch::ContainerTool> ToolFor(const std::string& image);
  Status StartOthers(const Setting& setting, const model::Model& model, RunningServer& running);
  static bool RunsAnyway(const Setting& setting) { return setting.server && !setting.server->url.empty(); }
  bool NeedsLink(const Setting& setting) const;
  Result<launch::StartedServer> StartOwn(const Setting& setting, const model::Model& model,
                                         launch::NetworkLink* link);
  Result<launch::StartedServer> StartOther(const Setting& setting, const OtherServer& other,
                                           launch::NetworkLink* link);
  Result<launch::StartedServer> StartContainer(const Setting& setting, launch::ServerImage image);
  Result<launch::NetworkLink*> LinkOf(const Network& network);

  const Options options_;
  const Clock& clock_;
  std::map<std::string, Result<launch::ContainerTool>> tools_;  // by image
  std::map<std::string, Result<std::unique_ptr<launch::NetworkLink>>> links_;
};

}  // namespace weir::trial
