#!/usr/bin/env bash
# Generates the Swift messages of Protos/ into the folders where they are committed, or into the same folders below
# the one given. Needs protoc; builds protoc-gen-swift of the swift-protobuf that the package resolved.
set -euo pipefail
cd "$(dirname "$0")/.."
root="${1:-.}"

# In a scratch folder of its own: after `--product` of a dependency, SwiftPM keeps a build plan with all
# products of all dependencies, and the next plain build would compile swift-protobuf's C++ protoc.
if [[ ! -d .build/checkouts/swift-protobuf ]]; then swift package resolve >/dev/null; fi
build=(
  swift build -q --package-path .build/checkouts/swift-protobuf --scratch-path .build-protoc-gen
  --product protoc-gen-swift
)
"${build[@]}"
plugin="$("${build[@]}" --show-bin-path)/protoc-gen-swift"

while read -r protos out; do
  mkdir -p "$root/$out"
  protoc -I Protos \
    --plugin=protoc-gen-swift="$plugin" \
    --swift_out="$root/$out" \
    --swift_opt=Visibility=Public,UseAccessLevelOnImports=true,FileNaming=DropPath \
    "Protos/$protos"/*.proto
done <Codegen/generated-folders.txt

Codegen/generate-protobuf-c.sh "$root"
