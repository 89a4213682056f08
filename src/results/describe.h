// The fields that several results share. For the .cc files of this module.
#pragma once

#include "base/fields.h"
#include "results/bottleneck.h"
#include "results/monitor_result.h"
#include "results/tensor.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, Bottleneck>& bottleneck) {
  fields("stage", bottleneck.stage);
  fields("share", bottleneck.share);
  fields.Unless("share_of", bottleneck.share_of);
  fields.Unless("gain_at_most", bottleneck.gain);
  fields.Unless("next", bottleneck.next);
  fields("next_images_per_s", bottleneck.next_images_per_s);
  fields.Unless("text", bottleneck.text);
}

template <typename F>
void Describe(F& fields, Described<F, Range>& range) {
  fields.FromZero("mean", range.mean);
  fields.FromZero("max", range.max);
  fields.FromZero("min", range.min);
}

template <typename F>
void Describe(F& fields, Described<F, Tensor>& tensor) {
  fields("name", tensor.name);
  fields("datatype", tensor.datatype);
  fields("shape", tensor.shape);
  fields.Unless("optional", tensor.optional);
}

}  // namespace weir::results
