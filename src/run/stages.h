// Where a picture's time goes. Contiguous stamps of one clock: every interval belongs to exactly one stage,
// so the stages of a picture, waiting included, sum to its total to the nanosecond.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "infer/device_stages.h"

namespace weir::run {

// In the order in which they happen. A stage that a way of running does not have takes no time: its two
// stamps are equal.
struct Stamps {
  Instant load_begin;                         // the picture is taken up: reading begins
  Instant ready;                              // decoded, resized, and written into its slot in the batch
  Instant send_begin;                         // its batch is full and may go
  Instant sent;                               // the service has taken the batch
  Instant infer_begin;                        // the engine began
  Instant infer_end;                          // the engine ended
  Instant result_begin;                       // the application takes up the answer
  Instant result_end;                         // scores turned into ranked classes
  Instant print_begin;                        // its turn in the order of the input
  Instant print_end;                          // written into the predictions file
  std::optional<infer::DeviceStages> device;  // within infer_begin to infer_end, by an accelerator's events
};

// Totals over pictures.
struct StageTimes {
  Duration load_prepare{};
  Duration wait{};  // between stages: for the batch to fill, for a slot in flight, for the engine, for its
                    // turn to be printed
  Duration send{};
  Duration infer{};
  Duration result_load{};
  Duration print{};
  Duration total{};  // print_end - load_begin; the sum of the others
  int64_t pictures = 0;
  std::optional<infer::DeviceStages> device;  // parts of `infer`, where an accelerator tells

  void Add(const Stamps& s);
};

inline void StageTimes::Add(const Stamps& s) {
  load_prepare += s.ready - s.load_begin;
  wait += (s.send_begin - s.ready) + (s.infer_begin - s.sent) + (s.result_begin - s.infer_end) +
          (s.print_begin - s.result_end);
  send += s.sent - s.send_begin;
  infer += s.infer_end - s.infer_begin;
  result_load += s.result_end - s.result_begin;
  print += s.print_end - s.print_begin;
  total += s.print_end - s.load_begin;
  pictures += 1;
  if (!s.device) return;
  if (!device) device.emplace();
  device->upload += s.device->upload;
  device->compute += s.device->compute;
  device->download += s.device->download;
}

}  // namespace weir::run
