#!/usr/bin/env python3
"""Holds the words of the project: retired names, long sentences, comments that begin with "Of" or "What", unlinked documents.

Usage: check_words.py [ROOT]. Prints one line for each fault and exits with 1 if there is one.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
LONGEST_SENTENCE = 30
SELF = {"tools/retired_words.txt", "tools/check_words.py", "docs/glossary.md"}


def tracked(*patterns):
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *patterns], capture_output=True, check=True)
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def retired_words():
    rules = []
    for line in read("tools/retired_words.txt").splitlines():
        if line and not line.startswith("#"):
            pattern, _, instead = line.partition("\t")
            rules.append((re.compile(pattern), instead))
    for name in tracked("src", "docs", "tests", "bench", "fuzz", "tools", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        if name in SELF or re.search(r"\.(bin|jpe?g|png|onnx|inc)$", name):
            continue
        for number, line in enumerate(read(name).splitlines(), 1):
            for pattern, instead in rules:
                if found := pattern.search(line):
                    yield f'{name}:{number}: "{found[0]}" is retired: {instead}'


def comments():
    start = re.compile(r"^\s*// (Of|What)\b")
    for name in tracked("src/*.h", "src/*.cc"):
        before = ""
        for number, line in enumerate(read(name).splitlines(), 1):
            if start.match(line) and not before.lstrip().startswith("//"):
                yield f'{name}:{number}: a comment begins with "{start.match(line)[1]}"; begin with a verb or a noun'
            before = line


def sentences(text):
    """Yields (line number, sentence) of the prose of a Markdown document: no code, no tables' rules, no headings."""
    fenced, paragraph, first = False, [], 1
    for number, line in enumerate(text.splitlines() + [""], 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            line = ""
        elif fenced or re.match(r"\s*(\||#)", line):
            cells = [] if fenced or line.lstrip().startswith("#") else line.strip().strip("|").split("|")
            for cell in cells:
                for sentence in re.split(r"(?<=[.!?])\s+", cell):
                    yield number, sentence
            line = ""
        if re.match(r"\s*([-*]|\d+\.)\s", line) or not line.strip():
            for sentence in re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph)):
                yield first, sentence
            paragraph = []
        if line.strip():
            if not paragraph:
                first = number
            paragraph.append(line.strip())


def long_sentences():
    for name in tracked("docs/*.md", "README.md", "CONTRIBUTING.md"):
        for number, sentence in sentences(read(name)):
            plain = re.sub(r"`[^`]*`", "code", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", sentence))
            words = len(re.findall(r"[^\W\d_]\S*", plain))
            if words > LONGEST_SENTENCE:
                yield f"{name}:{number}: a sentence of {words} words: {' '.join(plain.split()[:8])} ..."


def orphan_rows():
    for name in tracked("docs/*.md", "README.md", "CONTRIBUTING.md"):
        lines, fenced = read(name).splitlines(), False
        for index, line in enumerate(lines):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            if fenced or not line.startswith("|"):
                continue
            begins = index == 0 or not lines[index - 1].startswith("|")
            if begins and not (index + 1 < len(lines) and re.match(r"\|[\s:|-]+\|?$", lines[index + 1])):
                yield f"{name}:{index + 1}: a table row without a head"


def unlinked():
    documents = tracked("docs/*.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    linked = {"README.md"}
    for name in documents:
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", read(name), flags=re.S)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
            if not re.match(r"[a-z]+:", target):
                path = (ROOT / name).parent.joinpath(target).resolve()
                if path.is_relative_to(ROOT):
                    linked.add(str(path.relative_to(ROOT)))
                if not path.exists():
                    yield f"{name}: links to {target}, which is not there"
    for name in documents:
        if name not in linked:
            yield f"{name}: no other document links to it"


def main():
    faults = [fault for check in (retired_words, comments, long_sentences, orphan_rows, unlinked) for fault in check()]
    print("\n".join(faults) or "words: no fault")
    sys.exit(1 if faults else 0)


main()
