#!/usr/bin/env bash
# Builds the server's container image from the program as it lies in build/release: nothing is fetched.
#   tools/container.sh [IMAGE]      IMAGE: localhost/weir where none is given
# WEIR_PROGRAM names another program, WEIR_CONTAINER_TOOL docker in place of podman.
set -euo pipefail
cd "$(dirname "$0")/.."
image=${1:-localhost/weir}
program=${WEIR_PROGRAM:-build/release/weir}
engine=.deps/onnxruntime/onnxruntime/capi/libonnxruntime.so.1
tool=${WEIR_CONTAINER_TOOL:-podman}

fail() { echo "container: $*" >&2; exit 1; }
command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install podman runc (or WEIR_CONTAINER_TOOL=docker)"
[ -x "$program" ] || fail "$program is missing: ./dev build"
[ -e "$engine" ] || fail "$engine is missing: ./dev setup"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"  # it becomes / of the image
install -D "$program" "$root/usr/bin/weir"
install -D -m 644 "$(realpath "$engine")" "$root/usr/lib/weir/libonnxruntime.so.1"
strip "$root/usr/bin/weir"

# Every library of the two, at the place where it lies here, and the licence it is under.
libraries() { ldd "$root/usr/bin/weir" "$root/usr/lib/weir/libonnxruntime.so.1" | grep -o '/[^ ]*\.so[^ ]*' | grep -v "^$root" | sort -u; }
mapfile -t files < <(libraries)
cp -L --parents "${files[@]}" "$root"
mapfile -t real < <(realpath "${files[@]}")
for package in $(dpkg-query -S "${real[@]}" "${real[@]#/usr}" 2>/dev/null | cut -d: -f1 | sort -u); do
  cp -L --parents "/usr/share/doc/$package/copyright" "$root" 2>/dev/null || echo "container: no licence text of $package here" >&2
done
cp LICENSE "$root/usr/share/doc/LICENSE.weir"

mkdir -p "$root"/{etc/ssl/certs,models,tmp}
chmod 1777 "$root/tmp"
echo 'weir:x:65532:65532:weir:/:/usr/sbin/nologin' >"$root/etc/passwd"
echo 'weir:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
if [ -e /etc/ssl/certs/ca-certificates.crt ]; then cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"; fi

# A health check is part of docker's image format only; a fixed time makes the same files the same image.
options=()
if [ "$(basename "$tool")" = podman ]; then options=(--format docker --timestamp 0); fi
id() { "$tool" image inspect --format '{{.Id}}' "$image" 2>/dev/null || true; }
before=$(id)
"$tool" build -q "${options[@]}" -f deploy/Containerfile -t "$image" "$root" >/dev/null
if [ -n "$before" ] && [ "$before" != "$(id)" ]; then "$tool" image rm "$before" >/dev/null 2>&1 || true; fi  # it has no name any more
echo "container: $image, $("$tool" image inspect --format '{{.Size}}' "$image" | awk '{ printf "%.0f MB", $1 / 1e6 }')"
