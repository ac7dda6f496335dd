#!/usr/bin/env bash
# Generates what protoc-c makes of Protos/, and the Swift that makes messages of the structs of google/protobuf, into the
# folders where they are committed, or into the same folders below the one given. (What makes messages of the other
# structs is in generated.txt.) Needs protoc and protoc-c; PLUGIN names protoc-gen-connect-swift.
#
# protoc-c refuses `optional` in proto3. It gets each such field as the only member of a oneof, which is what `optional`
# stands for: the bytes are the same, and JSON names the same field.
set -euo pipefail
cd "$(dirname "$0")/.."
root="${1:-.}"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

# Writes the structs of proto files, given with their folders below Protos/, into a folder.
structs() {
  local out="$root/$1"
  shift
  local protos=("$@") imports=()
  mapfile -t imports < <(cd Protos && sed -nE 's/^import "(google\/.*)";/\1/p' "${protos[@]}" | sort -u)
  for proto in "${protos[@]}"; do
    mkdir -p "$scratch/$(dirname "$proto")"
    sed -E '/^syntax = "proto2"/,$ b; s/^( *)optional +([A-Za-z0-9_.]+) +([a-z0-9_]+) *= *([0-9]+);/\1oneof _\3 { \2 \3 = \4; }/' \
      "Protos/$proto" >"$scratch/$proto"
  done
  # By way of a descriptor set, which has no comments of other projects.
  protoc -I "$scratch" --include_imports --descriptor_set_out="$scratch/set" "${protos[@]}"
  mkdir -p "$out"
  protoc --descriptor_set_in="$scratch/set" --c_out="$out" "${protos[@]}" "${imports[@]}"
}

structs Tests/ProtobufCExamples connect/test/v1/test.proto connect/kinds/v1/{kinds,legacy}.proto
structs Tests/Benchmarks/Sources/CBenchMessages connect/bench/v1/bench.proto
structs Tests/NastyProtos/Structs nasty/structs/{names,modules,no_services}.proto

out="$root/Tests/ProtobufCStubs"
mkdir -p "$out"
options=Visibility=Public,UseAccessLevelOnImports=true,FileNaming=DropPath
options+=,MessageFamily=ProtobufC,StructModuleName=ProtobufCExamples
protoc --plugin="$PLUGIN" --connect-swift_out="$out" --connect-swift_opt="$options" \
  google/protobuf/{any,duration,empty,field_mask,struct,timestamp,wrappers}.proto
