#!/usr/bin/env bash
# Fails if what is committed in the folders of generated.txt differs from what the proto files generate.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
Codegen/generate.sh "$fresh"
while read -r protos _ out _; do
  if [[ "$protos" == \#* ]]; then continue; fi
  if ! diff -r "$out" "$fresh/$out"; then
    echo "$out is out of date: run \`make generate\`" >&2
    exit 1
  fi
done <Codegen/generated.txt
