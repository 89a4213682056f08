#!/usr/bin/env python3
"""Finds places in src/ that name a key of a result as a string outside src/results: other code reads and writes the structs there.
A result key is any key in the schemas of docs/reference/schema. Tests are left out. ALLOWED has the files whose keys only look the same,
each with the reason.

It also finds the other fault: a key of a schema that no struct describes, so that nothing writes it."""
import argparse
import collections
import fnmatch
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Pattern of paths below src/, keys (None: all), reason.
ALLOWED = [
    ("results/*", None, "the results themselves"),
    # Formats of others, and files that people write.
    ("http/*", None, "HTTP: header fields"),
    ("oip/*", None, "the Open Inference Protocol's own JSON"),
    ("serve/*", None, "the Open Inference Protocol's own JSON, and metrics of Prometheus"),
    ("infer/*", None, "parameters of engines and requests"),
    ("onnx/*", None, "attributes and operators of ONNX"),
    ("model/*", None, "Triton's config.pbtxt"),
    ("launch/*", None, "output of podman, tc and ssh"),
    ("yaml/*", None, "any YAML file"),
    ("cluster/*", None, "messages between hosts"),
    ("load/cluster/*", None, "messages between hosts"),
    ("probe/network_data.cc", None, "messages between hosts"),
    ("probe/network_probe.cc", {"port", "streams"}, "messages between hosts"),
    ("cli/agent.cc", None, "messages between hosts"),
    ("load/inputs/input_data.cc", None, "Triton's input data files"),
    ("load/session/session_requests.cc", {"recipe"}, "a parameter in the model's metadata"),
    ("load/session/local_target.cc", {"recipe"}, "a parameter in the model's metadata"),
    ("run/local_backend.cc", {"streams"}, "a parameter of an engine"),
    ("trial/repository.cc", None, "parameters of engines in config.pbtxt"),
    ("identity/vectors_file.cc", {"name"}, "JSON lines of embeddings: an input, and the export of one"),
    ("prepare/labels.cc", {"label"}, "columns of people's tables of labels"),
    ("dataset/recipe.cc", None, "recipe.yaml"),
    ("dataset/shard_format.cc", None, "NAME.json in a tar archive, for WebDataset"),
    ("predict/table/*.cc", None, "SPEC files, their expressions, and columns of tables"),
    ("record/trials.cc", {"id"}, "the place of a trial in a journal"),
    ("report/vega.cc", None, "Vega-Lite's own JSON"),
    ("advise/kubernetes.cc", None, "manifests of Kubernetes and KServe"),
    ("advise/decision.cc", {"accelerator", "architecture", "engine"}, "factors"),
    ("advise/goal.cc", None, "words of a target"),
    ("advise/accelerators.cc", {"model", "batch"}, "factors"),
    ("advise/hardware.cc", {"batch"}, "a factor"),
    ("advise/advice_files.cc", None, "factors, and words of a command"),
    ("advise/workload.cc", None, "the YAML file of a workload"),
    ("advise/plan.cc", {"accelerators", "storage", "link", "host", "accelerator"}, "names of resources and units"),
    # Levels of a study's factors: the words of its YAML file.
    ("study/study_file.cc", None, "the study's YAML file"),
    ("study/study_json.cc", None, "the study's YAML file, as a journal keeps it"),
    ("study/design.cc", {"batch", "in_flight", "images"}, "names of factors"),
    ("study/phases.cc", {"limits"}, "a factor"),
    ("study/figures.cc", {"in_flight"}, "a factor"),
    ("study/level.cc", None, "levels of factors in the study's YAML file"),
    ("study/factor.cc", None, "names and words of factors"),
    ("study/rules.cc", None, "names of factors"),
    ("watch/metrics_text.cc", {"stage", "stream"}, "labels of Prometheus"),
    ("trial/setting.cc", None, "levels of factors"),
    ("trial/server_image.cc", {"server"}, "a factor"),
    # Files of ours that are no results; one file reads and writes each.
    ("dataset/set_text.cc", None, "set.json, manifest.jsonl and rejects.jsonl of a prepared set"),
    ("prepare/prepare.cc", {"seed"}, "the options in set.json"),
    ("predict/predictor_file.cc", {"name"}, "a predictor's file"),
    ("predict/asked.cc", {"depth", "blocks"}, "columns of tables of networks"),
    ("study/entries.cc", None, "the lines of a journal"),
    # No JSON.
    ("probe/storage_result.cc", {"queue", "open", "read", "close", "decode", "augment", "hosts"}, "names of stages"),
    ("probe/storage_etl.cc", {"read", "decode", "resize", "encode", "write"}, "names of stages"),
    ("probe/probe_text.cc", None, "lines of a text for people"),
    ("probe/probe_result.cc", {"train", "infer", "mix", "stream", "phases"}, "names of phases"),
    ("report/probe_report.cc", None, "names of phases and stages, with their words for people"),
    ("probe/storage_phases.cc", {"queue", "open", "read", "close"}, "names of stages"),
    ("study/latency.cc", {"p50", "p90", "p95", "p99", "p99_9"}, "names of metrics"),
    ("cli/probe_storage_flags.cc", {"train", "files"}, "words of flags"),
    ("cli/probe_storage.cc", {"train", "infer"}, "words of a flag"),
    ("study/next_bottleneck.cc", {"network", "bottleneck", "mode"}, "names of metrics and of a factor"),
    ("study/length_check.cc", {"wall_s", "images"}, "names of metrics"),
    ("report/unit.cc", None, "names of metrics and of bottlenecks, with their words for people"),
    ("report/study_csv.cc", None, "names of columns"),
    ("report/study_*.cc", {"configuration", "factor", "p50"}, "columns of tables for people"),
    ("report/study_report.cc", {"slip"}, "names of metrics"),
    ("report/predict_text.cc", {"hardware"}, "a column of a table for people"),
    ("cli/main.cc", None, "names of verbs"),
    ("cli/load_flags.cc", {"http"}, "words of a flag"),
    ("cli/identities.cc", {"search"}, "the name of a command"),
    ("prepare/split.cc", {"train"}, "names of folders"),
    ("run/run_summary.cc", {"wait", "send", "infer", "print"}, "lines of a table for people"),
    ("report/fit_report.cc", {"kind"}, "a column of a table for people"),
    ("probe/host_reader.cc", {"bf16"}, "words of /proc/cpuinfo"),
]


def keys_of(schema):
    """Returns the names under every "properties" of a schema."""
    if isinstance(schema, list):
        return set().union(*map(keys_of, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    properties = schema.get("properties", {})
    return set(properties if isinstance(properties, dict) else ()).union(*(keys_of(value) for value in schema.values()), set())


# The files below src/ that describe the keys of every schema, and those of one schema beside results/SCHEMA_*.
SHARED = ["results/describe.h", "results/describe_runs.h", "results/schema_version.h", "results/check_results.cc", "results/verdict.cc"]
DESCRIBED_IN = {"advise": ["results/advice_result.cc"], "common": ["results/*"], "feed": ["feed/state.cc"], "probe-network": ["results/network_probe_result.cc"], "study": ["results/trial_result.cc"]}


def undescribed(root):
    """Returns (schema, key) for each key of a schema that no struct of its results names."""
    found = []
    for path in sorted((root / "docs/reference/schema").glob("*.json")):
        patterns = SHARED + [f"results/{path.stem.split('-')[0]}_*"] + DESCRIBED_IN.get(path.stem, [])
        sources = {source for pattern in patterns for source in (root / "src").glob(pattern) if not source.stem.endswith("_test")}
        words = set().union(*(re.findall(r'"(\w+)"', source.read_text()) for source in sources))
        found += [(path.stem, key) for key in sorted(keys_of(json.loads(path.read_text())) - words)]
    return found


def is_allowed(path, key):
    return any(fnmatch.fnmatch(path, pattern) and (keys is None or key in keys) for pattern, keys, _ in ALLOWED)


def uses(keys, source):
    """Returns (path, line, key) for each place where a key is read or written: json["key"], {"key", or a call's argument."""
    word = "|".join(sorted(map(re.escape, keys), key=len, reverse=True))
    access = re.compile(rf'(?:\[|\{{|\bfind\(|\bvalue\(|\bcontains\(|\bat\(|\berase\(|\bGet\w*\([^()"]*, |\bPut\w*\([^()"]*, )"({word})"')
    found = []
    for path in sorted(source.rglob("*.cc")):
        if path.name.endswith("_test.cc") or "testing" in path.parts:
            continue
        name = path.relative_to(source).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found += [(name, number, key) for key in access.findall(line) if not is_allowed(name, key)]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", default=ROOT, type=pathlib.Path)
    parser.add_argument("--by-file", action="store_true", help="only counts")
    arguments = parser.parse_args()
    keys = set().union(*(keys_of(json.loads(path.read_text())) for path in (arguments.root / "docs/reference/schema").glob("*.json")))
    found = uses(keys, arguments.root / "src")
    promised = undescribed(arguments.root)
    if arguments.by_file:
        for path, count in collections.Counter(path for path, _, _ in found).most_common():
            print(f"{count:4} src/{path}")
    else:
        for path, number, key in found:
            print(f"src/{path}:{number}: \"{key}\" is a key of a result: read and write the struct in src/results")
    for schema, key in promised:
        print(f"docs/reference/schema/{schema}.json: no struct of results describes \"{key}\", so nothing writes it")
    print(f"{len(found)} uses of {len(keys)} result keys outside src/results, {len(promised)} keys of schemas that no struct describes")
    return int(bool(found or promised) or not keys)


if __name__ == "__main__":
    sys.exit(main())
