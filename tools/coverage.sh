#!/usr/bin/env bash
# Prints the lines that unit tests execute, by module: coverage.sh [MODULE...]   (all modules where none is named)
set -euo pipefail
cd "$(dirname "$0")/../build/coverage"
bin=/usr/lib/llvm-19/bin
modules=("$@")
if [ $# -eq 0 ]; then for test in src/*/*_test; do modules+=("$(basename "$(dirname "$test")")"); done; fi
printf '%-10s %8s %8s %8s\n' module lines covered percent
for module in "${modules[@]}"; do
  test=src/$module/${module}_test
  [ -x "$test" ] || { echo "coverage: $test is missing: is $module a module with tests?" >&2; exit 2; }
  LLVM_PROFILE_FILE=$PWD/$module.profraw "$test" >"$module.coverage.log" 2>&1 || { echo "coverage: tests of $module failed: build/coverage/$module.coverage.log" >&2; exit 1; }
  $bin/llvm-profdata merge -sparse "$module.profraw" -o "$module.profdata"
  $bin/llvm-cov export --summary-only --instr-profile "$module.profdata" "$test" "../../src/$module" --ignore-filename-regex '(_test\.cc|/testing/)' |
    /usr/bin/python3 -c '
import json, sys
lines = json.load(sys.stdin)["data"][0]["totals"]["lines"]
print("%-10s %8d %8d %8.1f" % (sys.argv[1], lines["count"], lines["covered"], lines["percent"]))' "$module"
  rm "$module.profraw"
done
