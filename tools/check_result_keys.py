#!/usr/bin/env python3
"""Lists where src/ names a key of a result as a string outside src/results. A result key is any key in the schemas of run, load, prepare, monitor and
study in docs/reference/schema. Tests are left out, and so are modules that read and write formats of others, whose keys have the same names.
With --limit N it fails when there are more than N uses."""
import argparse
import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMAS = tuple(sorted(path.stem for path in (ROOT / "docs/reference/schema").glob("*.json")))
LEFT_OUT = {"results", "http", "oip", "onnx", "model", "infer", "serve", "launch", "yaml"}


def keys_of(schema):
    """Returns the names under every "properties" of a schema."""
    if isinstance(schema, list):
        return set().union(*map(keys_of, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    properties = schema.get("properties", {})
    return set(properties if isinstance(properties, dict) else ()).union(*(keys_of(value) for value in schema.values()), set())


def uses(keys):
    """Returns (path, line, key) for each place where a key is read or written: json["key"], {"key", or a call's argument."""
    word = "|".join(sorted(map(re.escape, keys), key=len, reverse=True))
    access = re.compile(rf'(?:\[|\{{|\bfind\(|\bvalue\(|\bcontains\(|\bat\(|\bGet\w*\([^()"]*, |\bPut\w*\([^()"]*, )"({word})"')
    found = []
    for path in sorted((ROOT / "src").rglob("*.cc")):
        module = path.relative_to(ROOT / "src").parts[0]
        if module in LEFT_OUT or path.name.endswith("_test.cc") or "testing" in path.parts:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found += [(path.relative_to(ROOT), number, key) for key in access.findall(line)]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--by-file", action="store_true", help="only counts")
    arguments = parser.parse_args()
    keys = set().union(*(keys_of(json.loads((ROOT / f"docs/reference/schema/{name}.json").read_text())) for name in SCHEMAS))
    found = uses(keys)
    if arguments.by_file:
        for path, count in collections.Counter(path for path, _, _ in found).most_common():
            print(f"{count:4} {path}")
    else:
        for path, number, key in found:
            print(f"{path}:{number}: {key}")
    print(f"{len(found)} uses of {len(keys)} result keys outside src/results")
    return int(arguments.limit is not None and len(found) > arguments.limit)


if __name__ == "__main__":
    sys.exit(main())
