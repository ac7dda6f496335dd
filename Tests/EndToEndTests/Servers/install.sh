#!/usr/bin/env bash
# Installs the Python servers' packages into .venv and generates their code into .venv/generated.
# Does nothing if that was done for the same requirements, proto files and Python.
set -euo pipefail
cd "$(dirname "$0")/../../.."
requirements=Tests/EndToEndTests/Servers/requirements.txt
protos=(
  connect/test/v1/test.proto
  connectrpc/conformance/v1/{config,service}.proto
  connectrpc/eliza/v1/eliza.proto
)

key="$({ cat "$requirements" "${protos[@]/#/Protos/}" "$0"; python3 --version; pwd; } | sha256sum | cut -d' ' -f1)"
if [[ -f .venv/installed && "$(cat .venv/installed)" == "$key" ]]; then exit 0; fi

echo "Installing the Python test servers into .venv"
rm -rf .venv
python3 -m venv .venv
.venv/bin/pip install --quiet --root-user-action=ignore --disable-pip-version-check --requirement "$requirements"
mkdir .venv/generated
PATH="$PWD/.venv/bin:$PATH" .venv/bin/python -m grpc_tools.protoc -I Protos \
  --python_out=.venv/generated --grpc_python_out=.venv/generated \
  --connectrpc_out=.venv/generated --connectrpc_opt=protobuf=google \
  "${protos[@]}"
echo "$key" >.venv/installed
