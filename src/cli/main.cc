#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <system_error>

#include "base/secrets.h"
#include "cli/agent.h"
#include "cli/console.h"
#include "cli/verbs.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

struct Verb {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
};
constexpr Verb kVerbs[] = {
    {"serve", "serve models over HTTP and gRPC by the Open Inference Protocol", Serve},
    {"load", "put load on a server, or on a model in this process, and measure the response", Load},
    {"run", "run a model over files, folders or prepared sets", Run},
    {"prepare", "make a prepared data set of pictures, or made pictures in known classes", Prepare},
    {"feed", "measure the feed of a training: batches in a new order each epoch, augmented", FeedVerb},
    {"model", "make a network, or show the facts of a model file", ModelVerb},
    {"watch", "follow live streams under a deadline, and account for every frame", Watch},
    {"study", "play an experiment: factors, randomised blocks, a server and a client for each trial", Study},
    {"advise", "find the configuration that meets a target, with evidence and files ready to use", Advise},
    {"plan", "count the storage units, links and hosts that a workload needs", Plan},
    {"report", "write the report of a study", Report},
    {"fit", "learn run times from measurements, for hardware and networks that nobody measured", Fit},
    {"predict", "predict run times, with intervals; refuse what nothing supports", Predict},
    {"identities", "build and search an index of named embeddings", Identities},
    {"health", "ask a server whether it is ready", Health},
    {"monitor", "run any command and report the resources it used", MonitorVerb},
    {"probe", "measure a storage, a network and this host", ProbeVerb},
    {"agent", "play one host's part of a load, a feed or a probe on several hosts", Agent},
    {"doctor", "report what is on this machine, and what would spoil a measurement", Doctor},
};

std::vector<std::string> command_line;  // set once, before any thread

void Usage(std::FILE* to) {
  fmt::print(
      to,
      "weir puts ready-made models to work and says which part is the bottleneck.\n\n  weir VERB ...\n\n");
  for (const Verb& verb : kVerbs) fmt::print(to, "  {:<11} {}\n", verb.name, verb.summary);
  fmt::print(to, "\n  weir VERB --help lists its flags; weir --version prints the build.\n");
}

// Buffers of hundreds of kilobytes come and go with every request and every batch. Left to its defaults glibc
// gives each back to the system and takes it anew, page by page, which costs more CPU time than all the rest
// of such a request. What is kept is what was once needed at the same time.
void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that it takes
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

int Main(const Arguments& arguments) {
  if (arguments.empty()) {
    Usage(stderr);
    return kBadInput;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    Usage(stdout);
    return kDone;
  }
  if (name == "--version") {
    fmt::print("weir {}\n", record::BuildDescription());
    return kDone;
  }
  const auto* verb = std::ranges::find_if(kVerbs, [&](const Verb& v) { return v.name == name; });
  if (verb == std::end(kVerbs)) {
    fmt::print(stderr, "weir: there is no verb \"{}\"; weir --help lists them\n", WithoutSecrets(name));
    return kBadInput;
  }
  const int status = verb->run({arguments.begin() + 1, arguments.end()});
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  std::fputs("weir: standard output: not all of the text could be written\n", stderr);
  return status == kDone ? kJobFailed : status;
}

}  // namespace

const std::vector<std::string>& CommandLine() { return command_line; }

}  // namespace weir::cli

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> all(argv, argv + argc);
    weir::cli::command_line = all;
    weir::cli::KeepFreedMemory();
    return weir::cli::Main({all.begin() + (all.empty() ? 0 : 1), all.end()});
  } catch (const std::bad_alloc&) {
    std::fputs(
        "weir: out of memory: fewer pictures in flight (--batch, --in-flight, --decode-threads) need less\n",
        stderr);
    return weir::cli::kJobFailed;
  } catch (const std::system_error& error) {
    std::fprintf(stderr,
                 "weir: %s: this machine or user has too few threads or too little memory left: fewer "
                 "threads need less\n",
                 error.what());
    return weir::cli::kJobFailed;
  }
}
