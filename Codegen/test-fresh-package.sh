#!/usr/bin/env bash
# Makes a package outside of this repository that depends on it by path, and there
#   1. builds a program that only links Connect: no generator may be compiled, and libprotobuf-c neither be asked for nor
#      linked (.ci/check-packages looks at which packages are resolved);
#   2. builds a program that also links ConnectNIO: of this repository, only ConnectChannels may be compiled besides;
#   3. generates at build time with the build-tool plugin, and into the tree with the command plugin, also for structs of
#      protoc-c; and does what README.md and the article on the first call show: targets, configurations, program and test;
#   4. builds and runs tests that call the generated code, and a program with `swift run`, after which the next build
#      plans nothing that the one before did not need: protoc of C++ must not have been compiled;
#   5. makes the clients internal of which mocks are generated, and takes protoc away: the plugins have to say what is wrong.
# The folder is removed at the end; FRESH_PACKAGE names one to keep and to build in again.
set -euo pipefail
cd "$(dirname "$0")/.."
repo="$PWD"
package="${FRESH_PACKAGE:-$(mktemp -d)}"
if [[ -z "${FRESH_PACKAGE:-}" ]]; then trap 'rm -rf "$package"' EXIT; fi
build="$package/.build/debug"

fail() {
  echo "$1" >&2
  exit 1
}

step() {
  echo "[$SECONDS s] $1"
}

# Writes the files of the package that README.md shows, and its targets to the file readme-targets.
readme() {
  python3 - "$repo" "$package" <<'END'
import re, sys
from pathlib import Path

repo, package = map(Path, sys.argv[1:])


def fences(document, language, part):
    text = (repo / document).read_text()
    found = [code for name, code in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M) if name == language and part in code]
    if not found:
        sys.exit(f"{document} has no code in {language} with {part!r}")
    return found


def write(path, text):
    file = package / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


first_call = "Sources/Connect/Connect.docc/FirstCall.md"
[manifest] = fences("README.md", "swift", "import PackageDescription")
targets = manifest.split("  targets: [\n")[1].split("\n  ]\n")[0]
write("readme-targets", targets.rstrip(",") + ",\n")
write("Sources/MyService/main.swift", fences("README.md", "swift", "NIOHTTPClient()")[0])
write("Sources/MyService/Protos/connectrpc/eliza/v1/eliza.proto", fences(first_call, "proto", "package connectrpc.eliza.v1;")[0])
[clients] = fences("README.md", "json", '"protoRoots": ["Protos"]')
if clients != fences(first_call, "json", '"protoRoots": ["Protos"]')[0]:
    sys.exit("README.md and the article on the first call show different configurations")
write("Sources/MyService/connect-codegen.json", clients)
write("Tests/MyServiceTests/connect-codegen.json", fences("README.md", "json", '"mocks": true')[0])
write("Tests/MyServiceTests/ElizaTests.swift", "import MyService\n" + fences("README.md", "swift", "XCTestCase")[0])
END
}

# Writes Package.swift: with the program that also links ConnectNIO unless $1 is `plain`, and with the targets that generate
# if it is `generating`.
manifest() {
  local generating="" networked=""
  if [[ "$1" != plain ]]; then
    networked='
    .executableTarget(name: "Networked", dependencies: [connect, connectNIO]),'
  fi
  if [[ "$1" == generating ]]; then
    generating='
    .target(name: "Greeter", dependencies: [connect], exclude: ["connect-codegen.json", "Protos"],
      plugins: [.plugin(name: "ConnectBuildPlugin", package: "connect-swift-linux")]),
    .target(name: "GreeterStructs", dependencies: [connectProtobufC], publicHeadersPath: "."),
    .target(name: "CGreeter", dependencies: ["GreeterStructs", connect, connectProtobufC],
      exclude: ["connect-codegen.json"],
      plugins: [.plugin(name: "ConnectBuildPlugin", package: "connect-swift-linux")]),
    .target(name: "Committed", dependencies: [connect], exclude: ["connect-codegen.json"]),
    .testTarget(name: "GreeterTests", dependencies: ["CGreeter", "Greeter", "GreeterStructs", "Committed", connect, connectProtobufC, connectTesting],
      exclude: ["connect-codegen.json"],
      plugins: [.plugin(name: "ConnectBuildPlugin", package: "connect-swift-linux")]),
'"$(<"$package/readme-targets")"
  fi
  cat <<END
// swift-tools-version: 6.2
import PackageDescription

let connect: Target.Dependency = .product(name: "Connect", package: "connect-swift-linux")
let connectNIO: Target.Dependency = .product(name: "ConnectNIO", package: "connect-swift-linux")
let connectProtobufC: Target.Dependency = .product(name: "ConnectProtobufC", package: "connect-swift-linux")
let connectTesting: Target.Dependency = .product(name: "ConnectTesting", package: "connect-swift-linux")

let package = Package(
  name: "fresh",
  dependencies: [
    .package(name: "connect-swift-linux", path: "$repo"),
  ],
  targets: [
    .executableTarget(name: "Plain", dependencies: [connect]),$networked$generating
  ]
)
END
}

step "Building a program that only links Connect, in $package"
mkdir -p "$package"
is_new=$([[ -d "$package/.build" ]] || echo yes)
cp -r Codegen/FreshPackage/. "$package"
manifest plain >"$package/Package.swift"
cd "$package"
# As on a machine without libprotobuf-c, as far as pkg-config tells.
mkdir -p pkg-config
for name in zlib libnghttp2; do cp "$(pkg-config --variable=pcfiledir $name)/$name.pc" pkg-config/; done
PKG_CONFIG_LIBDIR="$package/pkg-config" swift build 2>&1 | tee log | tail -n 1
if grep -i "protobuf-c" log; then fail "libprotobuf-c is asked for by a program that only links Connect"; fi
for module in SwiftProtobufPluginLibrary ConnectCodegen protoc_gen_swift ConnectProtobufC; do
  if [[ -n "$is_new" ]] && compgen -G "$build/Modules*/$module.swiftmodule" >/dev/null; then
    fail "$module was compiled for a program that only links Connect"
  fi
done
"$build/Plain"
if ldd "$build/Plain" | grep -q protobuf-c; then fail "a program that only links Connect links libprotobuf-c"; fi

step "Building a program that also links ConnectNIO"
manifest networked >"$package/Package.swift"
swift build -q
for file in "$build"/Modules*/Connect*.swiftmodule; do
  module="$(basename "$file" .swiftmodule)"
  if [[ -n "$is_new" && ! "$module" =~ ^Connect(NIO|Channels)?$ ]]; then
    fail "$module was compiled for a program that links Connect and ConnectNIO"
  fi
done
"$build/Networked"

step "Generating structs with protoc-c"
mkdir -p Sources/GreeterStructs
protoc -I Sources/Greeter/Protos --c_out=Sources/GreeterStructs greeter/v1/greeter.proto google/protobuf/timestamp.proto

step "Generating with the command plugin"
readme
manifest generating >"$package/Package.swift"
swift package --allow-writing-to-package-directory generate-connect
for suffix in pb connect; do
  [[ -s "Sources/Committed/Generated/greeter/v1/greeter.$suffix.swift" ]] || fail "no .$suffix.swift was generated"
done

step "Building, generating with the build-tool plugin"
swift build -q --build-tests
step "Running the tests"
swift test -q --skip-build --disable-swift-testing
step "Building after a program was run"
swift run -q Plain
swift build -q
if [[ -n "$(find "$build/" -path '*/protoc*.build/*' -name '*.cc.o' -print -quit)" ]]; then
  fail "protoc of C++ was compiled"
fi

step "Generating mocks of internal clients"
cp Sources/MyService/connect-codegen.json shown.json
echo '{ "protoRoots": ["Protos"] }' >Sources/MyService/connect-codegen.json
if swift build --build-tests >log 2>&1; then fail "mocks of internal clients were built"; fi
grep -q 'clients of MyService, which are internal there: add "options": { "Visibility": "Package" } to' log ||
  { cat log >&2; fail "the message on the visibility is missing"; }
if (($(grep -c "error:" log) > 1)); then cat log >&2; fail "there are other errors than that of the visibility"; fi
mv shown.json Sources/MyService/connect-codegen.json

step "Generating without protoc"
mkdir -p without-protoc
for program in /bin/* /usr/bin/* "$(dirname "$(command -v swift)")"/*; do
  if [[ "$(basename "$program")" != protoc ]]; then ln -sf "$program" without-protoc/; fi
done
touch Sources/Greeter/Protos/greeter/v1/greeter.proto
if PATH="$package/without-protoc" swift build >log 2>&1; then fail "the build went well without protoc"; fi
grep -q "protoc was not found. Install it" log || { cat log >&2; fail "the message on protoc is missing"; }
if PROTOC_PATH=/no/protoc swift build >log 2>&1; then fail "the build went well with a wrong PROTOC_PATH"; fi
grep -q "PROTOC_PATH is '/no/protoc'" log || { cat log >&2; fail "the message on PROTOC_PATH is missing"; }

step "The fresh package works"
