// The frame of a verb: flags, Ctrl-C, the work, the exit status.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "cli/console.h"
#include "cli/verbs.h"
#include "record/provenance.h"

namespace weir::cli {

// Parses the flags into a Wanted, then calls `work` with it and a token that Ctrl-C stops. A `work` without a
// token is ended by Ctrl-C at once. Returns the exit status; says an error on standard error.
template <typename Wanted, typename Parse, typename Work>
int RunVerb(const Arguments& arguments, Parse parse, Work work) {
  Wanted wanted;
  if (const std::optional<int> status = parse(arguments, wanted)) return *status;
  Result<int> status = kDone;
  if constexpr (std::invocable<Work, Wanted&>) {
    status = work(wanted);
  } else {
    const Interrupt interrupt;
    status = work(wanted, interrupt.token());
  }
  return status ? *status : FailWith(status.error());
}

// Adds the command line that repeats `result`, and where it was made.
template <typename Made>
void AddProvenance(Made& result, std::optional<int64_t> seed = std::nullopt) {
  const auto number = static_cast<uint64_t>(seed.value_or(0));
  result.provenance = record::CollectProvenance({.command = CommandLine(), .seed = number}).ToJson();
  result.command = record::CommandLine(CommandLine());
}

// Returns the hooks of a module that show notes and progress on the console. `console` must outlive them.
template <typename Hooks>
Hooks HooksOf(Console& console, const std::string& what) {
  return {.note = [&console](const std::string& text) { console.Note(text); },
          .progress =
              [&console, what](double elapsed_s, int64_t done, int64_t total, const std::string& extra) {
                console.Progress(elapsed_s, what, done, total, extra);
              },
          .progress_ended = [&console] { console.EndProgress(); }};
}

}  // namespace weir::cli
