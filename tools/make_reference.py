#!/usr/bin/env python3
"""Writes docs/reference/verbs.md from the program's own help: make_reference.py [PROGRAM] [--check]. With --check it writes nothing and fails if the page differs."""
import pathlib, re, subprocess, sys

root = pathlib.Path(__file__).resolve().parent.parent
arguments = [a for a in sys.argv[1:] if a != "--check"]
program = arguments[0] if arguments else str(root / "build/release/weir")
page = root / "docs/reference/verbs.md"


def help_of(*words):
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, timeout=60, check=True, env={"COLUMNS": "100", "PATH": "/usr/bin:/bin"})
    return done.stdout.rstrip() + "\n"


def subverbs(text):
    """Names under a heading such as "Subcommands:"."""
    found = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
    return re.findall(r"^  ([a-z][\w-]*)", found[1], re.M) if found else []


parts = ["# Verbs and flags\n", "The program prints this text for `weir VERB --help`. `tools/make_reference.py` writes this page.\n"]
for verb in re.findall(r"^  ([a-z]+) {2,}\S", help_of(), re.M):
    text = help_of(verb)
    parts.append(f"## weir {verb}\n\n```text\n{text}```\n")
    for sub in subverbs(text):
        parts.append(f"### weir {verb} {sub}\n\n```text\n{help_of(verb, sub)}```\n")
made = "\n".join(parts)
if "--check" in sys.argv[1:]:
    if page.read_text() != made:
        print("docs/reference/verbs.md is not current: run tools/make_reference.py", file=sys.stderr)
        sys.exit(1)
else:
    page.write_text(made)
    print(page.relative_to(root))
