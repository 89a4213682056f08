#!/usr/bin/env bash
# Long proofs: half an hour each of load over HTTP and gRPC at 10,000 requests a second against a server that is stopped, killed and started
# anew (WEIR_SOAK_SECONDS: of each); 100,000 pictures use no more memory than 1,000 (within 5 %), and no picture is lost on the way. The tests that are marked
# `long` come before.
set -euo pipefail
cd "$(dirname "$0")/.."
weir=build/release/weir
work=build/soak
mkdir -p "$work"
[ -d "$work/tiny" ] || "$weir" model make tiny -o "$work"
[ -f "$work/pictures/set.json" ] || "$weir" prepare --make 1000 --seed 3 -o "$work/pictures"

peak() {  # peak PASSES: runs over the 1,000 pictures so many times; prints the largest resident size in kB
  /usr/bin/python3 - "$@" <<'PY'
import json, os, subprocess, sys
passes, weir, work = int(sys.argv[1]), sys.argv[2], sys.argv[3]
child = subprocess.Popen([weir, "run", f"{work}/tiny", f"{work}/pictures", "--repeat-data", str(passes), "--answers", "/dev/null",
                          "--json", f"{work}/result.json"], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
result = json.load(open(f"{work}/result.json"))
assert status == 0 and result["images"] == 1000 * passes and result["rejected"] == 0, (status, result["images"], result["rejected"])
print(usage.ru_maxrss)
PY
}
short=$(peak 1 "$weir" "$work")
long=$(peak 100 "$weir" "$work")
echo "soak: peak memory $short kB over 1,000 pictures, $long kB over 100,000"
[ "$long" -le $((short * 105 / 100)) ] || { echo "soak: memory grows"; exit 1; }
WEIR_PROGRAM=$PWD/$weir /usr/bin/python3 -m pytest -q -m long tests
/usr/bin/python3 tools/soak_load.py "${WEIR_SOAK_SECONDS:-1800}"
