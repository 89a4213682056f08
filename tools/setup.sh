#!/usr/bin/env bash
# Installs what is missing on Debian 12: packages by apt (as root or with sudo), the engines into .deps/ of this checkout.
# Does nothing, in a blink, when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

install_packages() {
  local missing
  # One query for all: what it does not print as installed is missing.
  # shellcheck disable=SC2016 # dpkg fills in the names
  mapfile -t missing < <(sort tools/packages.txt | comm -13 <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u) -)
  [ ${#missing[@]} -eq 0 ] && return
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "these packages are missing and this is neither root nor sudo: ${missing[*]}"
    root=(sudo)
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# The headers of ONNX Runtime's C API come from Debian 13's package, read through apt with lists of its own: the
# system's sources stay as they are.
fetch_headers() {  # fetch_headers DIR
  local apt=$1 sha=14f7d959d5deacbcf1504830d4189f91fc67382b399ed9ae9d3aa9c4050ced08 mirror
  # shellcheck disable=SC2016 # apt fills in the names
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 'Origin: Debian' | awk '$2 == "bookworm" { print $1; exit }')
  [ -n "$mirror" ] || fail "no Debian mirror among apt's sources: add one for bookworm, then apt-get update"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  : >"$apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$apt/sources.list"
  local options=(-qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferencesparts=/dev/null -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache"
    -o Dir::State::status="$apt/status" -o APT::Sandbox::User="$(id -un)")
  apt-get "${options[@]}" update
  (cd "$apt" && apt-get "${options[@]}" download libonnxruntime-dev=1.21.0+dfsg-1)
  echo "$sha  $(echo "$apt"/libonnxruntime-dev_*.deb)" | sha256sum --check --quiet || fail "libonnxruntime-dev is not the file expected"
}

install_engines() {
  local wanted; wanted=$(cat tools/engines.txt tools/setup.sh | sha256sum)
  [ "$(cat .deps/stamp 2>/dev/null)" = "$wanted" ] && return
  say "fetching the inference engines into .deps/"
  rm -rf .deps/new && mkdir -p .deps/new/wheels
  local new=$PWD/.deps/new
  /usr/bin/python3 -m pip download -q --no-deps --require-hashes --only-binary=:all: --implementation cp --python-version 3.11 \
    --abi cp311 --platform manylinux_2_28_x86_64 -d "$new/wheels" -r tools/engines.txt
  for name in onnxruntime openvino nanobind; do
    /usr/bin/python3 -m zipfile -e "$new"/wheels/$name-*.whl "$new/$name"
  done
  ln -sf libonnxruntime.so.1.31.1 "$new/onnxruntime/onnxruntime/capi/libonnxruntime.so.1"
  fetch_headers "$new/apt"
  dpkg -x "$new"/apt/libonnxruntime-dev_*.deb "$new/onnxruntime"
  rm -rf "$new/wheels" "$new/apt" .deps/onnxruntime .deps/openvino .deps/nanobind
  mv "$new/onnxruntime" "$new/openvino" "$new/nanobind" .deps/
  rm -rf "$new"
  echo "$wanted" >.deps/stamp
}

# The charts of reports: one bundle of Vega, Vega-Lite and Vega-Embed, which the wheel writes without a network.
install_charts() {
  local wanted; wanted=$(sha256sum <tools/charts.txt)
  [ "$(cat .deps/vega/stamp 2>/dev/null)" = "$wanted" ] && return
  say "fetching the charts' script into .deps/"
  rm -rf .deps/new-vega && mkdir -p .deps/new-vega
  /usr/bin/python3 -m pip download -q --no-deps --require-hashes --only-binary=:all: -d .deps/new-vega -r tools/charts.txt
  /usr/bin/python3 -m zipfile -e .deps/new-vega/vl_convert_python-*.whl .deps/new-vega/wheel
  PYTHONPATH=.deps/new-vega/wheel /usr/bin/python3 -c 'import vl_convert; print(vl_convert.javascript_bundle(), end="")' >.deps/new-vega/bundle.js
  rm -rf .deps/new-vega/*.whl .deps/new-vega/wheel .deps/vega
  echo "$wanted" >.deps/new-vega/stamp
  mv .deps/new-vega .deps/vega
}

# The engine for NVIDIA's GPUs and the libraries beneath it, flat in one folder, where each finds the others. Not part of
# the usual set-up: it is 1.5 GB. One list at a time: what is there of another goes.
install_cuda() {  # install_cuda MAJOR
  local list=tools/cuda$1.txt new=$PWD/.deps/new-cuda wanted
  [ -f "$list" ] || fail "there are lists for CUDA 12 and 13, not for $1"
  wanted=$(sha256sum <"$list")
  [ "$(cat .deps/cuda/stamp 2>/dev/null)" = "$wanted" ] && return
  local free; free=$(df --output=avail -k . | tail -n 1)
  [ "$free" -gt 6000000 ] || fail "CUDA takes 6 GB while it is unpacked, and $((free / 1000000)) GB are free here"
  say "fetching the engine for CUDA $1 into .deps/cuda/ (about 1.3 GB)"
  rm -rf "$new" && mkdir -p "$new/lib"
  grep -v '^#' "$list" | while read -r wheel; do
    mkdir "$new/wheel"
    echo "$wheel" >"$new/wheel/list.txt"
    /usr/bin/python3 -m pip download -q --no-deps --require-hashes --only-binary=:all: --implementation cp --python-version 3.11 \
      --abi cp311 --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 \
      --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 --platform manylinux_2_12_x86_64 -d "$new/wheel" -r "$new/wheel/list.txt"
    /usr/bin/python3 -m zipfile -e "$new"/wheel/*.whl "$new/wheel/files"
    find "$new/wheel/files" -name 'lib*.so*' ! -name '*tensorrt*' -exec mv -t "$new/lib" {} +
    rm -rf "$new/wheel"
  done
  (cd "$new/lib" && ln -sf libonnxruntime.so.1.* libonnxruntime.so.1)
  for needed in libonnxruntime.so.1 libonnxruntime_providers_cuda.so "libcudart.so.$1" "libcublasLt.so.$1" libcudnn.so.9; do
    [ -e "$new/lib/$needed" ] || fail "$needed is in none of the packages of $list"
  done
  echo "$wanted" >"$new/lib/stamp"
  rm -rf .deps/cuda
  mv "$new/lib" .deps/cuda
  rm -rf "$new"
}

grep -q '^VERSION_ID="12"' /etc/os-release 2>/dev/null || say "this is not Debian 12: the package names may differ"
install_packages
install_engines
install_charts
if [ "${1:-}" = --cuda ]; then install_cuda "${2:-13}"; fi
