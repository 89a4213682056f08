#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <system_error>

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
    {"serve", "serve models over HTTP and gRPC, as the Open Inference Protocol has it", Serve},
    {"load", "put load on a server, or on a model in this process, and say what it takes", Load},
    {"run", "pictures in, answers out: run a model over files, folders or prepared sets", Run},
    {"prepare", "make a prepared data set of pictures, or made pictures in known classes", Prepare},
    {"feed", "feed a training: batches in a new order each epoch, augmented; measures such a feed", FeedVerb},
    {"model", "make a network, or show what a model file says of itself", ModelVerb},
    {"watch", "follow live streams under a deadline, and account for every frame", Watch},
    {"study", "an experiment: factors, randomised blocks, trials with servers and clients of their own",
     Study},
    {"advise", "the configuration that meets a target, with the evidence and the files that use it", Advise},
    {"report", "what a study found, and how sure that is", Report},
    {"fit", "learn run times from measurements, for hardware and networks nobody measured", Fit},
    {"predict", "say what times to expect, how sure that is, and where nothing supports it", Predict},
    {"identities", "an index of named embeddings: whom does this face belong to", Identities},
    {"health", "ask a server whether it is ready", Health},
    {"monitor", "run any command and say what it used", MonitorVerb},
    {"probe", "measures a storage and this host: accelerators fed, frames in time, speeds", ProbeVerb},
    {"doctor", "what is on this machine, and what would spoil a measurement on it", Doctor},
};

std::vector<std::string> command_line;  // set once, before any thread

void Usage(std::FILE* to) {
  fmt::print(
      to,
      "weir puts ready-made models to work and says which part is the bottleneck.\n\n  weir VERB ...\n\n");
  for (const Verb& verb : kVerbs) fmt::print(to, "  {:<11} {}\n", verb.name, verb.summary);
  fmt::print(to, "\n  weir VERB --help tells what it takes; weir --version the build.\n");
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
    fmt::print(stderr, "weir: there is no verb \"{}\"; weir --help lists them\n", name);
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
