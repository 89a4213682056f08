#!/usr/bin/env python3
"""Finds what ends the program or throws on paths that handle bytes from outside: CHECK, .at(), std::stoi and the like, std::get of a
variant, .value() of a Result or optional, and throw. Such bytes are requests, models, pictures, listings, messages and files: what is wrong
with them is a Result.

READERS are the paths below src/ that handle them. ALLOWED has the exceptions: what no byte from outside decides, each with the reason.
An index that was looked up, or a condition that the lines above made true, is no exception: write it so that it cannot fail."""
import argparse
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

READERS = ["base/json*", "base/text*", "base/utf8*", "http/*", "oip/*", "serve/*", "onnx/*", "model/*", "image/*", "dataset/*", "feed/*",
           "object/*", "cluster/*", "identity/*", "infer/rows*", "infer/batcher*", "infer/tensor*", "infer/engines/*", "prepare/*",
           "yaml/*", "load/cluster/*", "load/inputs/*", "probe/*", "watch/*"]

KINDS = {
    "CHECK": re.compile(r"\bCHECK\("),
    "at": re.compile(r"(?:\.|->)at\("),
    "stoi": re.compile(r"\bsto(?:i|l|ll|ul|ull|f|d|ld)\("),
    "get": re.compile(r"\bstd::(?:get<|any_cast)"),
    "value": re.compile(r"(?<!error)(?<!failed)(?<!entry)(?<!field)(?<!item)(?<!seed)\.value\(\)"),
    "throw": re.compile(r"\bthrow\b"),
}

# Pattern of paths below src/, kinds, reason.
ALLOWED = [
    # Values of another type than the code asked for: the callers check is_*() first, or read by base/fields.h, which turns it into an Error.
    ("base/json*", {"at", "throw"}, "the interface of the JSON type itself"),
    ("oip/http/json_value.*", {"value"}, "simdjson's accessors, which return an error code with TRY_JSON"),
    ("oip/http/parse.cc", {"value"}, "simdjson's accessor of a member that was found"),
    # What the program itself made or numbered.
    ("load/inputs/answer_check.cc", {"at"}, "a function of its own, over a tensor whose size was checked"),
    ("feed/sampler.cc", {"at"}, "classes that the loop above counted"),
    ("feed/store_source.cc", {"at"}, "folders that the numbering has just named"),
    ("http/event_loop.cc", {"CHECK"}, "a descriptor that the kernel has just given is in no table"),
    ("http/http_response_queue.cc", {"CHECK"}, "numbers of answers that the server gave out"),
    ("http/rx_timestamps.cc", {"CHECK"}, "the order of our own calls"),
    ("http/http_transport.cc", {"CHECK"}, "the order of our own calls"),
    ("http/http_response_reader.cc", {"CHECK"}, "sizes that Room() offered"),
    ("http/http_request_reader.cc", {"get"}, "a variant that the line above has looked into"),
    ("oip/grpc/acceptor.cc", {"at"}, "numbers of connections that the acceptor gave out"),
    ("oip/http/server.cc", {"get"}, "a variant that the line above has looked into"),
    ("oip/http/tensor_json.cc", {"CHECK"}, "elements of a tensor whose data CheckData has passed"),
    ("oip/http/plain_http.cc", {"CHECK"}, "a request that this client prepared"),
    ("oip/model_facts.cc", {"CHECK"}, "messages that are made here, written to memory"),
    ("serve/loaded_model.cc", {"CHECK"}, "a session that the loader has opened"),
    ("serve/repository.cc", {"CHECK", "at"}, "versions and names that the same call has listed"),
    ("serve/shared_memory_registry.cc", {"CHECK"}, "the size that ShapeOutput has compared"),
    ("serve/top_k.h", {"CHECK"}, "a count above 0, which the reader of the request wants"),
    ("serve/metrics.cc", {"at"}, "members of an enumeration"),
    ("serve/failure_log.cc", {"at"}, "members of an enumeration"),
    ("serve/pictures.cc", {"CHECK", "value"}, "lengths that CheckData has passed, and a recipe that the form was made of"),
    ("onnx/safety.cc", {"at"}, "a key that contains() has found"),
    ("onnx/net.cc", {"at"}, "functions that were all entered before"),
    ("model/config_change.cc", {"CHECK"}, "messages that ParseConfig has made"),
    ("model/model.cc", {"at"}, "an output whose labels were entered before"),
    ("image/jpeg_private.cc", {"CHECK"}, "the build of libjpeg, which the program looks at first"),
    ("image/decode.cc", {"CHECK"}, "windows and shrinks that callers compute from the header"),
    ("dataset/*", {"CHECK", "value"}, "indices within a set's own facts, names and sizes that a writer has checked"),
    ("feed/*", {"CHECK"}, "positions within a plan of our own, and entries of a ring of our own"),
    ("object/*", {"CHECK", "at"}, "numbers of requests and files that were given out here; handles of libraries"),
    ("cluster/*", {"CHECK", "at"}, "ranks that the roster has admitted"),
    ("identity/*", {"CHECK"}, "dimensions and rows that were checked as the index was opened; entries of a ring of our own"),
    ("identity/made.cc", {"value"}, "a seed's number"),
    ("infer/engines/strings.cc", {"CHECK"}, "tensors of strings that BindInputs has passed, offsets of the library"),
    ("prepare/*", {"CHECK", "value"}, "windows and shares of our own; names that ListInputs has measured"),
    ("load/cluster/*", {"get", "value"}, "scenarios that the task was made of, a seed's number"),
    ("load/inputs/requests.cc", {"CHECK"}, "options that CheckRequestOptions has passed"),
    ("probe/*", {"CHECK"}, "files that the probe has made, entries of a ring of our own"),
    ("watch/*", {"CHECK", "value"}, "sizes of frames that the decoder made, parts of the program"),
    ("watch/detections.cc", {"at"}, "a member that indexes dimensions, whose number Floats() has checked"),
]


def kinds_of(line):
    code = line.split("//")[0]
    return {kind for kind, pattern in KINDS.items() if pattern.search(code)}


def is_reader(path):
    plain = not path.endswith("_test.cc") and "/testing/" not in path
    return plain and path.endswith((".cc", ".h")) and any(fnmatch.fnmatch(path, reader) for reader in READERS)


def allowed(path, kind):
    return any(kind in kinds and fnmatch.fnmatch(path, pattern) for pattern, kinds, _ in ALLOWED)


def faults_in(src):
    for path in sorted(src.rglob("*")):
        name = path.relative_to(src).as_posix()
        if not is_reader(name):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for kind in sorted(kinds_of(line)):
                if not allowed(name, kind):
                    yield f"src/{name}:{number}: {kind} on a path of bytes from outside: return an Error: {line.strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=ROOT)
    faults = list(faults_in(parser.parse_args().root / "src"))
    print("\n".join(faults) if faults else "no path of bytes from outside can end the program")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
