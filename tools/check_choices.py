#!/usr/bin/env python3
"""Finds choices whose words are written a second time. A choice is an array of base/choices.h: `inline constexpr Choices<...> kNames{...}`.
Other code compares values of its enum, and takes words from the array. Found are comparisons with a word of a choice, and lists of two
or more words of one choice. Tests are left out. ALLOWED has what only looks the same, each with the reason."""
import argparse
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Pattern of paths below src/, words (None: all), reason.
ALLOWED = [
    # To be made values: engines and precisions are still texts where an engine is opened.
    ("infer/engines/*", {"f32", "f16", "bf16", "tf32"}, "a precision that is still a text"),
    ("model/*", {"emulated", "onnxruntime", "openvino", "f16", "bf16"}, "an engine or precision that is still a text"),
    ("serve/api.cc", {"onnxruntime"}, "an engine that is still a text"),
    ("study/waterfall.cc", {"files", "in-process", "microservice", "distributed"}, "levels of a study, which are JSON"),
    ("results/bounds.cc", {"infer", "cpu"}, "stages of a result, and a kind of device that is a text there"),
    ("infer/device.cc", {"all"}, "every card, not a phase"),
    # The same letters with another meaning.
    ("object/*", {"http"}, "the scheme of an object's URL"),
    ("oip/*", {"http", "grpc"}, "the scheme of a server's URL"),
    ("http/*", {"http"}, "the scheme of a URL"),
    ("monitor/proc.cc", {"cpu"}, "a line of /proc/stat"),
    ("load/*", {"in-process"}, "the way to a model that has no server"),
    ("cli/load.cc", {"in-process"}, "the way to a model that has no server"),
    ("study/*", {"none"}, "the level of limits and accelerator that is none"),
    ("trial/*", {"none"}, "the level of limits and accelerator that is none"),
    ("study/level.cc", {"off"}, "a level of server_batching"),
    ("trial/setting.cc", {"off"}, "a level of server_batching"),
    ("trial/phases_beside.cc", {"feed"}, "a verb"),
    ("report/*", None, "texts of results, which know no study and no engine"),
]

ARRAY = re.compile(r"inline constexpr Choices<[^>]*>\s+(k\w+)\s*\{\{(.*?)\}\};", re.DOTALL)
TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
COMPARED = re.compile(r'[=!]=\s*"([^"\n]+)"|"([^"\n]+)"\s*[=!]=')
LIST = re.compile(r'\{\s*(?:"[^"\n]*"\s*,\s*)+"[^"\n]*"\s*\}')


def choices(src):
    """(array's name, file) -> its words."""
    found = {}
    for path in sorted(src.rglob("*.h")):
        for name, body in ARRAY.findall(path.read_text()):
            found[name, path] = set(TEXT.findall(body))
    return found


def allowed(name, word):
    return any(fnmatch.fnmatch(name, pattern) and (words is None or word in words) for pattern, words, _ in ALLOWED)


def faults_in(path, src, found):
    name = str(path.relative_to(src))
    text = re.sub(r"//[^\n]*", "", path.read_text())
    text = ARRAY.sub(lambda match: "\n" * match[0].count("\n"), text)
    known = {word: array for (array, _), words in found.items() for word in words}
    for match in COMPARED.finditer(text):
        word = match[1] or match[2]
        if word in known and not allowed(name, word):
            yield text.count("\n", 0, match.start()) + 1, f'compares with "{word}": compare the value, of {known[word]}'
    for match in LIST.finditer(text):
        listed = set(TEXT.findall(match[0]))
        for (array, _), words in found.items():
            if len(listed) > 1 and listed <= words and not all(allowed(name, word) for word in listed):
                yield text.count("\n", 0, match.start()) + 1, f"lists words of {array} again: {', '.join(sorted(listed))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", default=ROOT, type=pathlib.Path)
    src = parser.parse_args().root / "src"
    found = choices(src)
    faults = []
    if len(found) < 10:
        faults.append("src: fewer than ten choices are found: has the form of the arrays changed?")
    for path in sorted(p for p in src.rglob("*") if p.suffix in (".h", ".cc")):
        if path.name.endswith("_test.cc") or "testing" in path.parts:
            continue
        faults += [f"{path.relative_to(src.parent)}:{line}: {what}" for line, what in faults_in(path, src, found)]
    print("\n".join(faults) or f"choices: {len(found)}, and none is written twice")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
