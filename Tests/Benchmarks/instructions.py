#!/usr/bin/env python3
"""Counts the instructions that calls take, which other programs on the machine do not change.

    instructions.py [--rows REGEX] [--functions N]

Runs our own clients of bench.py's rows under callgrind, each with fewer and with more calls: what the difference between the
two is, divided by the calls, leaves out the start. The server answers each batch at once here, since callgrind makes clients
many times slower; so batches are smaller than in bench.py. With --functions it lists those in which a client spends most
more than the row's first client.
"""

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import bench

FEWER, MORE = 2_000, 10_000


def count(client, row, options, port, folder):
    """The instructions of one call, in all and by function."""
    totals, functions = [], []
    for calls in (FEWER, MORE):
        output = folder / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", client, "--port", port, "--calls", calls]
        for key, value in row.work.items():
            command += [f"--{key}"] if value is True else [f"--{key}", value]
        command += options.format(roots=folder / "server.pem").split()
        run = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
        collected = re.search(r"Collected : (\d+)", run.stderr)
        if run.returncode != 0 or collected is None:
            raise SystemExit(f"callgrind failed in '{row.name}': {run.stderr.strip()[-1000:]}")
        totals.append(int(collected.group(1)))
        functions.append(by_function(output))
    per_call = Counter({name: cost / (MORE - FEWER) for name, cost in (functions[1] - functions[0]).items()})
    return (totals[1] - totals[0]) / (MORE - FEWER), per_call


def by_function(output):
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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench.make_certificates(folder)
        client = folder / "ConnectBench"
        # Without what debuggers read, which valgrind may not understand.
        subprocess.run(["strip", "-g", "-o", client, bench.BIN / "ConnectBench"], check=True)
        for row in bench.rows():
            if not re.search(arguments.rows, row.name) or row.work["kind"] != "unary":
                continue
            print(f"\n{row.name}")
            first = None
            for name, options in row.clients.items():
                if options is None:
                    continue
                server = bench.RunningServer(row.server, folder)
                try:
                    total, functions = count(client, row, options, server.port, folder)
                finally:
                    server.stop()
                first = first or (total, functions)
                print(f"  {name:<22}{total:10,.0f} instructions  {total - first[0]:+10,.0f}", flush=True)
                difference = functions if functions is first[1] else functions - first[1]
                for function, cost in difference.most_common(arguments.functions):
                    print(f"      {cost:8,.0f}  {function[:110]}")


if __name__ == "__main__":
    main()
