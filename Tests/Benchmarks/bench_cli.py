#!/usr/bin/env python3
"""Runs `connectrpc load` beside `h2load`, and `connectrpc call` beside `buf curl`, in turns, and prints medians and ratios.

    bench_cli.py [--repetitions N] [--seconds S] [--starts N]

The server is the canned server of bench.py. Load: calls a second of one connection, which one processor makes; programs on core 0,
the server on core 1. Call: the time from the start of the program to its end, with one answer of a local server.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench

ROOT = bench.HERE.parents[1]
# Where `make bench-cli` builds the program.
PROGRAM = ROOT / ".build" / "release" / "connectrpc"
BUF = ROOT / ".venv" / "bin" / "buf"
PROTO = "connect/bench/v1/bench.proto"
IN_FLIGHT = 128
# Of the request, and of the canned answer.
SIZE = 20
LOADS = {
    "connect, HTTP/2": ["--protocol", "connect", "--http", "2"],
    "grpc, HTTP/2": ["--protocol", "grpc", "--http", "2"],
    "connect, HTTP/1.1": ["--protocol", "connect", "--http", "1"],
}
CALLS = {"connect": [], "grpc": ["--http", "2"]}


def make_schema(folder):
    """A descriptor set for both programs."""
    schema = folder / "bench.binpb"
    subprocess.run(
        ["protoc", "--include_imports", f"--descriptor_set_out={schema}", "-I", ROOT / "Protos", PROTO], check=True
    )
    return schema


def run(command, is_pinned=True):
    command = bench.pinned(0, command) if is_pinned else [str(part) for part in command]
    output = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if output.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: {output.stderr.strip() or output.stdout.strip()}")
    return output.stdout


def load(options, url, schema, data, seconds):
    """Calls a second of `connectrpc load`."""
    command = [PROGRAM, "load", url, "--schema", schema, "-d", data, "--callers", IN_FLIGHT, "--json"]
    report = json.loads(run(command + ["--duration", f"{seconds}s"] + options))
    if report["failures"]:
        raise SystemExit(f"calls have failed: {report['codes']}")
    return report["callsPerSecond"]


def h2load(url, folder, seconds, http1=False):
    """Calls a second of h2load with as many calls in flight."""
    body = folder / "body"
    body.write_bytes(b"\x0a" + bytes([SIZE]) + b"x" * SIZE)
    streams = ["--h1", "-c", IN_FLIGHT] if http1 else ["-c", 1, "-m", IN_FLIGHT]
    command = ["h2load", "--duration", seconds, "--warm-up-time", 0, *streams, "-d", body]
    text = run(command + ["-H", "content-type: application/proto", url])
    for line in text.splitlines():
        if line.startswith("finished in"):
            return float(line.split(",")[1].split()[0])
    raise SystemExit(f"h2load has no result: {text}")


def call(command):
    """Milliseconds from the start of a program to its end."""
    start = time.monotonic()
    run(command, is_pinned=False)
    return (time.monotonic() - start) * 1e3


def measure_loads(arguments, folder, schema, data):
    runs = {name: [] for name in [*LOADS, "h2load, HTTP/2", "h2load, HTTP/1.1"]}
    for _ in range(arguments.repetitions):
        for name, figures in runs.items():
            server = bench.RunningServer(bench.Server(SIZE), folder)
            url = f"http://127.0.0.1:{server.port}{bench.SERVICE}/Unary"
            try:
                if name.startswith("h2load"):
                    figures.append(h2load(url, folder, arguments.seconds, http1="1.1" in name))
                else:
                    figures.append(load(LOADS[name], url, schema, data, arguments.seconds))
            finally:
                server.stop()
    print(f"\ncalls a second, {SIZE} B, {IN_FLIGHT} in flight: medians of {arguments.repetitions}")
    medians = {name: statistics.median(figures) for name, figures in runs.items()}
    for name, figures in runs.items():
        peer = "h2load, HTTP/1.1" if "1.1" in name else "h2load, HTTP/2"
        line = f"  {name:<20} {medians[name]:10.0f}  ({min(figures):.0f} to {max(figures):.0f})"
        print(line if name == peer else f"{line}  {medians[name] / medians[peer]:6.2f} x {peer}")
    sys.stdout.flush()


def measure_calls(arguments, folder, schema, data):
    server = bench.RunningServer(bench.Server(SIZE), folder)
    url = f"http://127.0.0.1:{server.port}{bench.SERVICE}/Unary"
    runs = {}
    for name, options in CALLS.items():
        common = ["--schema", schema, "-d", data, "--protocol", name, url]
        prior = ["--http2-prior-knowledge"] if name == "grpc" else []
        runs[f"connectrpc call, {name}"] = ([PROGRAM, "call", *options, *common], [])
        runs[f"buf curl, {name}"] = ([BUF, "curl", *prior, *common], [])
    try:
        for command, _ in runs.values():
            call(command)
        for _ in range(arguments.starts):
            for command, figures in runs.values():
                figures.append(call(command))
    finally:
        server.stop()
    print(f"\nmilliseconds of one call, from start to end of the program: medians of {arguments.starts}")
    medians = {name: statistics.median(figures) for name, (_, figures) in runs.items()}
    for name, (_, figures) in runs.items():
        line = f"  {name:<24} {medians[name]:8.1f}  ({min(figures):.1f} to {max(figures):.1f})"
        peer = name.replace("connectrpc call", "buf curl")
        print(line if name == peer else f"{line}  {medians[name] / medians[peer]:6.2f} x {peer}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3, help="how often each load runs")
    parser.add_argument("--seconds", type=int, default=5, help="how long each load runs")
    parser.add_argument("--starts", type=int, default=15, help="how often each program makes its call")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        schema = make_schema(folder)
        # Bytes are base64 in JSON: 20 of them.
        data = json.dumps({"data": "eHh4eHh4eHh4eHh4eHh4eHh4eHg="})
        measure_loads(arguments, folder, schema, data)
        measure_calls(arguments, folder, schema, data)


if __name__ == "__main__":
    main()
