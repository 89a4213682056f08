#!/usr/bin/env python3
"""Holds the includes of src/ against each module's USES, and finds tests no target builds and clocks read outside base/."""
import pathlib, re, sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
src, faults, uses = root / "src", [], {}
for cmake in sorted(src.glob("*/CMakeLists.txt")):
    call = re.search(r"add_module\(\s*(\w+)([^)]*)\)", cmake.read_text())
    if not call or call[1] != cmake.parent.name:
        faults.append(f"{cmake}: wants one add_module({cmake.parent.name} ...)")
        continue
    words = re.search(r"USES((?:\s+[a-z_]+)*)", call[2])
    uses[call[1]] = set(words[1].split() if words else []) | {"base", call[1]}
LAYER = {"base": 0, "yaml": 1, "stats": 1, "record": 1, "monitor": 1, "onnx": 1, "infer": 1, "data": 1, "model": 1, "wire": 1, "launch": 1,
         "make": 2, "prepare": 2, "probe": 2, "run": 2, "serve": 2, "load": 2, "study": 2, "predict": 2, "report": 2,
         "trial": 3, "cli": 4}
for module, used in uses.items():
    for other in used - {module}:
        if LAYER[other] > LAYER[module] or (LAYER[other] == LAYER[module] == 2):
            faults.append(f"src/{module}: may not use {other}: it is not below")
for path in sorted(p for p in src.rglob("*") if p.suffix in (".h", ".cc")):
    module, text = path.relative_to(src).parts[0], path.read_text()
    if module not in uses:
        faults.append(f"{path}: its module has no CMakeLists.txt, so no target builds it")
        continue
    for include in re.findall(r'#include "([a-z_]+)/', text):
        if include in LAYER and include not in uses[module]:
            faults.append(f"{path.relative_to(root)}: includes {include}/, which USES does not name")
    if module != "base" and re.search(r"clock_gettime|gettimeofday|_clock::now|std::time\(|[^a-z_]time\(nullptr\)", text):
        faults.append(f"{path.relative_to(root)}: reads a clock; take a Clock of base/clock.h")
for path in sorted(root.rglob("*_test.cc")):
    if src not in path.parents and not any(x in path.parts for x in ("build", ".deps")):
        faults.append(f"{path.relative_to(root)}: a test outside src/ that no target builds")
print("\n".join(faults) or f"layering: {len(uses)} modules, no fault")
sys.exit(1 if faults else 0)
