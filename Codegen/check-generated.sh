#!/usr/bin/env bash
# Fails if what is committed in the folders of generated.txt, of what protoc-c makes, and of the documents' code differs
# from what the proto files and the documents generate. Renews Tests/NastyProtos, which is not committed.
set -euo pipefail
cd "$(dirname "$0")/.."

Codegen/extract-code --self-test
fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
Codegen/generate.sh "$fresh"
{
  grep -v "^#" Codegen/generated.txt
  sed -n 's/^structs \([^ ]*\) .*/- - \1/p' Codegen/generate-protobuf-c.sh
  echo - - Tests/DocumentationTests/Extracted -
} | while read -r _ _ out _; do
  if [[ "$out" == Tests/NastyProtos/* ]]; then
    # Only if it differs, so that the same is not compiled again.
    diff -rq "$out" "$fresh/$out" &>/dev/null || { rm -rf "$out" && mkdir -p "$out" && cp -r "$fresh/$out/." "$out"; }
  # Cassettes of the documents' tests are recorded, and stand beside these.
  elif ! diff -r --exclude=Cassettes "$out" "$fresh/$out"; then
    echo "$out is out of date: run \`make generate\`" >&2
    exit 1
  fi
done
