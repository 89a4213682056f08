// A program started in a container, by podman or docker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "launch/process/launched.h"

namespace weir::launch {

class NetworkLink;

// podman or docker, and what it takes here to make it start containers. A value.
struct ContainerTool {
  std::string program;                      // "podman", "docker"
  std::vector<std::string> global_options;  // before "run": another runtime than its default
  std::vector<std::string> run_options;     // after "run": limits that this machine grants
};

struct ContainerOptions {
  std::string image;
  std::vector<std::string> command;      // after the image's entry point; empty: as the image has it
  std::vector<std::string> environment;  // "NAME=value"
  struct Mount {
    std::string from, to;  // a folder here and its place inside; never written to
  };
  std::vector<Mount> mounts;
  std::vector<int> cpu_list;  // runs on these only; empty: on all
  double cpus = 0;            // CPU quota in cores; 0: none
  int64_t memory_bytes = 0;   // limit; 0: none
  // It is on its far side; must outlive the container. nullptr: the container shares this machine's network.
  const NetworkLink* link = nullptr;
  Duration start_timeout = 60s;  // until its first process runs
};

// Finds a tool that starts containers of `image` here. Tries podman, then docker. Each is tried with its own
// defaults, then with the limits of this process, then with another runtime. Common causes: a runtime that
// cannot handle this machine's control groups, and default limits above those of this machine. Takes some
// tenths of a second for each try. kNotFound if the image is not here (nothing is fetched); kUnsupported,
// with the words of each tool and the remedy, if none starts.
Result<ContainerTool> FindContainerTool(const std::string& image, const Clock& clock);

// Starts it in the foreground of the tool, which passes on SIGTERM and what the program says, and removes the
// container when it has ended. When this process ends in whatever way, a shell that waits for it has the tool
// kill and remove the container. pid() is of its first process: its control group, /proc/PID/cgroup, is the
// container's. `clock` must outlive it. Errors have the tool's words.
Result<std::unique_ptr<Launched>> StartContainer(const ContainerTool& tool, const ContainerOptions& options,
                                                 const Clock& clock);

// Returns the versions of podman and docker by name: of those that are here.
std::map<std::string, std::string> ContainerToolVersions(const Clock& clock);

// The parts that only reckon.

// "podman run ..." for a container of this name. The image's own health check is off: it costs CPU, and
// whoever launched asks for himself. The container has the label of this process (OwnerLabel of orphans.h).
std::vector<std::string> RunArguments(const ContainerTool& tool, const ContainerOptions& options,
                                      const std::string& name);

// Returns the tools to try with `program`, most usual first; `open_files` and `processes` are this process's
// hard limits.
std::vector<ContainerTool> ToolsToTry(const std::string& program, int64_t open_files, int64_t processes);

}  // namespace weir::launch
