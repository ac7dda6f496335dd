#!/usr/bin/env bash
# Fails if the committed Swift messages differ from what their proto files generate.
set -euo pipefail
cd "$(dirname "$0")/.."
committed=Tests/LoopbackServer/Generated

fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
Codegen/generate-test-messages.sh "$fresh"
if ! diff -r "$committed" "$fresh"; then
  echo "$committed is out of date: run \`make generate\`" >&2
  exit 1
fi
