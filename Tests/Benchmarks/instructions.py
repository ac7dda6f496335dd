#!/usr/bin/env python3
"""Counts the instructions that calls take, which other programs on the machine do not change.

    instructions.py [--rows REGEX] [--functions N]

Runs our own clients of bench.py's rows under callgrind, each with fewer and with more calls: the difference between the two,
divided by the calls, leaves out the start. The server answers each batch at once here, since callgrind makes clients many
times slower; so batches are smaller than in bench.py. With --functions it lists those in which a client spends most more than
the row's first client.
"""

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import bench

# Fewer and more calls. So many that the start, which differs by up to 400,000 instructions, counts for less than 0.5 %.
# Streams have fewer messages than in bench.py.
CALLS = {"unary": (500, 4_500), "server-stream": (2, 22), "client-stream": (2, 22)}
MESSAGES = 1_000


@dataclass
class Cost:
    """What a call or a message takes."""

    instructions: float
    allocations: float
    # Instructions by function, if they were asked for.
    functions: Counter


@contextmanager
def counting():
    """A folder with what `count` needs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench.make_certificates(folder)
        # Without what debuggers read, which valgrind may not understand.
        subprocess.run(["strip", "-g", "-o", folder / "ConnectBench", bench.BIN / "ConnectBench"], check=True)
        yield folder


def count(row, options, folder, by_function=False):
    """The cost of one call, or of one message of a stream."""
    server = bench.RunningServer(row.server, folder)
    try:
        fewer, more = (run(row, options, calls, server.port, folder, by_function) for calls in CALLS[row.work["kind"]])
    finally:
        server.stop()
    calls = more[0] - fewer[0]
    functions = Counter({name: cost / calls for name, cost in (more[3] - fewer[3]).items()})
    return Cost((more[1] - fewer[1]) / calls, (more[2] - fewer[2]) / calls, functions)


def run(row, options, calls, port, folder, by_function):
    """How many calls or messages a client made, and the instructions, allocations and instructions by function of all."""
    work = {**row.work, "port": port, "calls": calls}
    if row.work["kind"] != "unary":
        work["messages"] = MESSAGES
    with tempfile.NamedTemporaryFile(dir=folder) as output:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output.name}", folder / "ConnectBench"]
        for key, value in work.items():
            command += [f"--{key}"] if value is True else [f"--{key}", value]
        command += options.format(roots=folder / "server.pem").split()
        ended = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=3_600)
        collected = re.search(r"Collected : (\d+)", ended.stderr)
        if ended.returncode != 0 or collected is None:
            raise SystemExit(f"callgrind failed in '{row.name}': {ended.stderr.strip()[-1000:]}")
        report = json.loads(ended.stdout.strip().splitlines()[-1])
        functions = functions_of(output.name) if by_function else Counter()
    return report["count"], int(collected.group(1)), report["allocations"] * report["count"], functions


def functions_of(output):
    listing = subprocess.run(
        ["callgrind_annotate", "--threshold=100", output], capture_output=True, text=True, check=True
    ).stdout
    demangled = subprocess.run(
        ["swift", "demangle", "--simplified"], input=listing, capture_output=True, text=True, check=True
    ).stdout
    functions = Counter()
    for line in demangled.splitlines():
        match = re.match(r"\s*([\d,]+) \(\s*[\d.]+%\)\s+\S*?:(.*?)(?: \[\S+\])?$", line)
        if match:
            functions[match.group(2)] += int(match.group(1).replace(",", ""))
    return functions


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", required=True, help="only rows whose name has this regular expression")
    parser.add_argument("--functions", type=int, default=0, help="how many functions to list for each client")
    arguments = parser.parse_args()
    with counting() as folder:
        for row in bench.rows():
            if not re.search(arguments.rows, row.name) or row.work["kind"] not in CALLS:
                continue
            print(f"\n{row.name}")
            first = None
            for name, options in row.clients.items():
                if options is None:
                    continue
                cost = count(row, options, folder, by_function=arguments.functions > 0)
                first = first or cost
                print(
                    f"  {name:<22}{cost.instructions:10,.0f} instructions  {cost.instructions - first.instructions:+10,.0f}"
                    f"  {cost.allocations:6.1f} allocations",
                    flush=True,
                )
                difference = cost.functions if cost is first else cost.functions - first.functions
                for function, instructions in difference.most_common(arguments.functions):
                    print(f"      {instructions:8,.0f}  {function[:110]}")


if __name__ == "__main__":
    main()
