#!/usr/bin/env bash
# Generates the Swift messages, stubs and mocks of Protos/, and extracts the code of the documents, into the folders where
# they are committed, or into the same folders below the one given. generated.txt says what goes where. Needs protoc.
set -euo pipefail
cd "$(dirname "$0")/.."
root="${1:-.}"

# In a scratch folder of its own: after `--product`, SwiftPM keeps a build plan with all products of all dependencies,
# and the next plain build would compile swift-protobuf's C++ protoc. Nothing is built if no source is newer than what
# was built last.
scratch=.build-generators
bin="$scratch/debug"
sources=(Codegen/Library Codegen/protoc-gen-*)
if [[ -e Package.resolved ]]; then sources+=(Package.resolved); fi
if [[ ! -e "$scratch/built" || -n "$(find "${sources[@]}" -newer "$scratch/built" -print -quit)" ]]; then
  mkdir -p "$scratch"
  touch "$scratch/building"
  for product in protoc-gen-swift protoc-gen-connect-swift protoc-gen-connect-swift-mocks; do
    swift build -q --scratch-path "$scratch" --product "$product"
  done
  mv "$scratch/building" "$scratch/built"
fi

while read -r protos made out options stub_options; do
  if [[ "$protos" == \#* ]]; then continue; fi
  if [[ "$stub_options" == - ]]; then stub_options="$options"; else stub_options="$options,$stub_options"; fi
  mkdir -p "$root/$out"
  arguments=(-I Protos)
  if [[ ",$made," == *,messages,* ]]; then
    arguments+=(--plugin="$bin/protoc-gen-swift" --swift_out="$root/$out" --swift_opt="$options")
  fi
  if [[ ",$made," == *,stubs,* ]]; then
    arguments+=(--plugin="$bin/protoc-gen-connect-swift")
    arguments+=(--connect-swift_out="$root/$out" --connect-swift_opt="$stub_options")
  fi
  if [[ ",$made," == *,mocks,* ]]; then
    arguments+=(--plugin="$bin/protoc-gen-connect-swift-mocks")
    arguments+=(--connect-swift-mocks_out="$root/$out" --connect-swift-mocks_opt="$stub_options")
  fi
  protoc "${arguments[@]}" "Protos/$protos"/*.proto
done <Codegen/generated.txt

PLUGIN="$bin/protoc-gen-connect-swift" Codegen/generate-protobuf-c.sh "$root"
Codegen/extract-code "$root/Tests/DocumentationTests/Extracted"
