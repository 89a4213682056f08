#!/usr/bin/env python3
"""Compares the includes of src/ with each module's USES and with the order of modules; also finds tests that no target builds and clocks read outside base/."""
import pathlib, re, sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
src, faults, uses = root / "src", [], {}
# A module of layer 1 or 3 may use those before it in its layer; modules of layer 2 never use one another.
LAYERS = [["base"],
          ["yaml", "stats", "results", "monitor", "record", "image", "object", "dataset", "feed", "identity", "gpu", "infer", "onnx", "model", "http", "oip", "launch", "cluster"],
          ["load", "synth", "prepare", "probe", "run", "serve", "study", "report", "predict", "watch"],
          ["trial", "advise"],
          ["cli"]]
place = {module: (layer, position) for layer, modules in enumerate(LAYERS) for position, module in enumerate(modules)}
for cmake in sorted(src.glob("*/CMakeLists.txt")):
    module = cmake.parent.name
    call = re.search(r"add_module\(\s*(\w+)([^)]*)\)", cmake.read_text())
    if not call or call[1] != module:
        faults.append(f"{cmake}: wants one add_module({module} ...)")
        continue
    if module not in place:
        faults.append(f"{cmake}: give {module} its layer in tools/check_layering.py")
        continue
    words = re.search(r"USES((?:\s+[a-z_]+)*)", call[2])
    uses[module] = set(words[1].split() if words else [])
for module, used in uses.items():
    for other in sorted(used):
        below = place.get(other, (9, 9))
        if below >= place[module] or (below[0] == place[module][0] == 2):
            faults.append(f"src/{module}: may not use {other}: it is not below")
included = {module: set() for module in uses}
for path in sorted(p for p in src.rglob("*") if p.suffix in (".h", ".cc")):
    module, text = path.relative_to(src).parts[0], path.read_text()
    if module not in uses:
        faults.append(f"{path}: its module has no CMakeLists.txt, so no target builds it")
        continue
    for include in re.findall(r'#include "([a-z_]+)/', text):
        included[module].add(include)
        if include in place and include not in uses[module] | {"base", module}:
            faults.append(f"{path.relative_to(root)}: includes {include}/, which USES does not name")
    if module != "base" and re.search(r"clock_gettime|gettimeofday|_clock::now|std::time\(|[^a-z_]time\(nullptr\)", text):
        faults.append(f"{path.relative_to(root)}: reads a clock; take a Clock of base/clock.h")
for module, used in uses.items():
    for other in sorted(used - included[module]):
        faults.append(f"src/{module}: USES names {other}, which no file includes")
for path in sorted(root.rglob("*_test.cc")):
    if src not in path.parents and not any(x in path.parts for x in ("build", ".deps")):
        faults.append(f"{path.relative_to(root)}: a test outside src/ that no target builds")
print("\n".join(faults) or f"layering: {len(uses)} modules, no fault")
sys.exit(1 if faults else 0)
