#!/usr/bin/env bash
# Fails if the committed Swift messages and C structs differ from what their proto files generate.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
Codegen/generate.sh "$fresh"
{
  cat Codegen/generated-folders.txt
  echo "- Tests/ProtobufCExamples"
  echo "- Tests/ConnectProtobufCTests/Structs"
} | while read -r _ out; do
  if ! diff -r "$out" "$fresh/$out"; then
    echo "$out is out of date: run \`make generate\`" >&2
    exit 1
  fi
done
