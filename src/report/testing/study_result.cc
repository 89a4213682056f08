#include "report/testing/study_result.h"

#include "base/json.h"

namespace weir::report {

results::StudyResult SmallResult() {
  constexpr const char* kText = R"json({
  "schema_version": 1,
  "study": {"study": "small", "question": "Which <batch>?", "data": "d", "design": "factorial", "factors": {"batch": [1, 8]},
      "fixed": {"model": ["m|x"]}, "repeats": 2, "seed": 7, "objective": {"metric": "throughput_images_per_s", "better": "higher"}, "figures": [],
      "also": [], "except": []},
  "provenance": {"host": "box", "build_id": "4f2a", "command": "weir study s.yaml -o s", "libraries": {"onnxruntime": "1.31"}},
  "options": {"confidence": 0.95, "margin": 0.03, "alpha": 0.05, "power": 0.8},
  "trials": {"valid": 9, "suspect": 1, "invalid": 0, "failed": 0, "skipped": 0, "planned": 10, "retried": 1},
  "blocks": 2,
  "reference": 0,
  "answers": [{"metric": "throughput_images_per_s", "ranked_by": "throughput_images_per_s", "best": 1, "mean": 110.5,
      "others": [{"configuration": 0, "against": 1, "metric": "throughput_images_per_s", "n": 2, "ratio": 0.906, "low": 0.9, "high": 0.912,
      "p": 0.001, "adjusted_p": 0.001, "told": "lower", "smallest_difference": 0.0076}]}],
  "figures": [{"title": "Figure 4 & more", "metric": "throughput_images_per_s", "kind": "lines", "x": "batch", "series": [{"name": "sync",
      "points": [{"x": 1, "mean": 100.1, "low": 98.7, "high": 101.5, "n": 2, "suspect": 0}, {"x": 8, "mean": 110.5, "low": 108.8, "high": 112.2,
      "n": 2, "suspect": 1}]}]}, {"title": "Figure 5", "metric": "throughput_images_per_s", "kind": "bars", "series": [{"name": "",
      "points": [{"name": "batch 1", "mean": 100.1, "n": 2, "suspect": 0}, {"name": "batch 8", "mean": 110.5, "low": 108.8, "high": 112.2, "n": 2,
      "suspect": 1}]}]}],
  "configurations": [{"index": 0, "label": "batch 1", "factors": {"batch": 1}, "levels": {"batch": "1"}, "trials": {"valid": 2, "suspect": 0,
      "invalid": 0, "failed": 0, "skipped": 0}, "metrics": {"throughput_images_per_s": {"n": 2, "mean": 100.1, "standard_deviation": 1.5,
      "standard_error": 0.5, "low": 98.7, "high": 101.5, "median": 100.1, "min": 99, "max": 101}, "stages_ms.infer": {"n": 2, "mean": 12.5,
      "standard_error": 0.25, "low": 12, "high": 13, "median": 12.5, "min": 12, "max": 13}, "resources.host_memory_bytes.mean": {"n": 2,
      "mean": 250000000, "median": 250000000, "min": 250000000, "max": 250000000}}, "words": {"bottleneck": {"infer": 2},
      "absent.resources.server_cpu": {"the counters of the far host cannot be read": 2}}, "emulated": false, "most_trials_valid": true},
      {"index": 1, "label": "batch 8", "factors": {"batch": 8}, "levels": {"batch": "8"}, "trials": {"valid": 1, "suspect": 1, "invalid": 0,
      "failed": 0, "skipped": 0}, "metrics": {"throughput_images_per_s": {"n": 2, "mean": 110.5, "standard_deviation": 1.4, "standard_error": 0.6,
      "low": 108.8, "high": 112.2, "median": 110.2, "min": 109, "max": 112}}, "words": {"bottleneck": {"decode": 1, "infer": 1}},
      "most_trials_valid": true, "bottleneck": {"stage": "decode", "times": 1, "of": 2, "next": "infer", "gain": {"n": 2, "ratio": 1.5, "low": 1.4,
      "high": 1.6}}, "targets": {"p99_ms": {"at_most": 50, "verdict": "met"}, "price_per_million_images": 2.5}, "emulated": false}],
  "comparisons": [{"configuration": 1, "against": 0, "metric": "throughput_images_per_s", "n": 2, "ratio": 1.104, "low": 1.0977, "high": 1.1101,
      "adjusted_p": 0.002, "told": "higher", "smallest_difference": 0.0076, "p": 0.001}],
  "effects": [{"factor": "batch", "from": "1", "to": "8", "metric": "throughput_images_per_s", "pairs": 2, "n": 2, "ratio": 1.104, "low": 1.0977,
      "high": 1.1101, "told": "higher", "acts": "in opposite directions", "pairs_higher": 1, "pairs_lower": 1, "least": {"configuration": 1,
      "label": "batch 8", "against": "batch 1", "ratio": 0.6, "n": 2, "p": 0.001, "adjusted_p": 0.001, "told": "higher"},
      "most": {"configuration": 1, "label": "batch 8", "against": "batch 1", "ratio": 1.58, "n": 2, "p": 0.001, "adjusted_p": 0.001,
      "told": "higher"}, "by_level": [{"factor": "mode", "level": "sync", "pairs": 1, "n": 2, "ratio": 1.58, "low": 1.5, "high": 1.7,
      "told": "higher", "p": 0.001, "adjusted_p": 0.001}, {"factor": "mode", "level": "async", "pairs": 1, "n": 2, "ratio": 0.99, "low": 0.97,
      "high": 1.01, "told": "no difference shown", "limit": 0.031, "p": 0.001, "adjusted_p": 0.001}], "p": 0.001, "adjusted_p": 0.001}],
  "architectures": [{"from": "in-process", "to": "microservice", "at": "batch 8", "n": 2, "ratio": 0.8, "low": 0.7, "high": 0.9, "told": "lower",
      "configuration": 1, "label": "batch 8", "against": "batch 8", "p": 0.001, "adjusted_p": 0.001}],
  "variance": {"metric": "throughput_images_per_s", "trials": 4, "residual_degrees": 3, "residual_deviation": 0.021, "normality_p": 0.4,
      "durbin_watson": 2.1, "terms": [{"factors": ["mode", "batch"], "degrees": 1, "f": 12.5, "p": 0.01, "adjusted_p": 0.03, "share": 0.6}]},
  "outliers": [{"configuration": 1, "label": "batch 8", "block": 1, "position": 2, "value": 60, "ratio": 0.6, "t": -9, "p": 0.001,
      "evidence": "steal: 9 %"}],
  "drift": {"metric": "throughput_images_per_s", "blocks": 2, "flagged": true, "shown": true, "change": 0.05, "low": 0.04, "high": 0.06,
      "restless_blocks": [{"block": 1, "ratio": 0.9, "evidence": "foreign-cpu in 3 of 4 trials"}]},
  "merged": [{"combination": {"batch": 1, "protocol": "grpc"}, "configuration": 0, "why": ["protocol is not applicable"]}],
  "dropped": [{"combination": {"batch": 8, "payload": "shared-memory"}, "why": "two nodes share no memory"}],
  "rows": [{"id": "a1", "attempt": 1, "counts": true, "configuration": 0, "label": "batch 1", "block": 0, "position": 1, "role": "trial", "seed": 9,
      "took_s": 1.5, "levels": {"batch": "1"}, "verdict": {"verdict": "VALID", "reasons": []}, "metrics": {"throughput_images_per_s": 100.1,
      "bottleneck": "infer"}, "command": "weir run m|x d --batch 1"}, {"id": "b1", "attempt": 1, "counts": false, "configuration": 1,
      "label": "batch 8", "block": 0, "position": 2, "role": "trial", "seed": 9, "took_s": 0.5, "levels": {"batch": "8"},
      "verdict": {"verdict": "failed", "reasons": [], "message": "the \"server\" fell, <b>hard</b>"}, "metrics": {}, "command": ""}, {"id": "b1",
      "attempt": 2, "counts": true, "configuration": 1, "label": "batch 8", "block": 0, "position": 2, "role": "trial", "seed": 9, "took_s": 2.5,
      "levels": {"batch": "8"}, "verdict": {"verdict": "SUSPECT", "reasons": [{"reason": "steal", "evidence": "steal 3.1 %"}]},
      "metrics": {"throughput_images_per_s": 0.1, "bottleneck": "decode"}, "command": "weir run m|x d --batch 8"}],
  "latency_figures": [],
  "memory_figures": [],
  "stability_figures": []
})json";
  return results::StudyResult::FromJson(ParseJson(kText).value()).value();
}

}  // namespace weir::report
