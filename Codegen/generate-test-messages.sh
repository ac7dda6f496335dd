#!/usr/bin/env bash
# Generates the Swift messages of Protos/connect/test/v1 into the folder given (default: where they are
# committed). Needs protoc and the protoc-gen-swift that `swift build --product protoc-gen-swift` makes.
set -euo pipefail
cd "$(dirname "$0")/.."
out="${1:-Tests/LoopbackServer/Generated}"

swift build -q --product protoc-gen-swift
plugin="$(swift build --show-bin-path)/protoc-gen-swift"
mkdir -p "$out"
protoc -I Protos \
  --plugin=protoc-gen-swift="$plugin" \
  --swift_out="$out" \
  --swift_opt=Visibility=Public,UseAccessLevelOnImports=true,FileNaming=DropPath \
  Protos/connect/test/v1/*.proto
