#!/usr/bin/env python3
"""Compares what calls cost with the file thresholds.

    costs.py [--write | --tables | --write-tables | --self-test]

Counts instructions and allocations as instructions.py does. Fails if a figure is above its threshold, and says which are so far
below that the threshold should be lowered. --write counts and renews the file and the tables of the documents. --tables only
checks that these tables agree with the file, and --write-tables renews them.

A table in a document is made from the template in the comment above it:

    <!-- costs
    | `async` | {both of unary 20 B, 32 in flight: connect} |
    -->
    | `async` | 50,150 | 21 |
    <!-- end of costs -->

`{ROW: VARIANT}` stands for instructions, `{allocations of …}` for allocations, `{both of …}` for a cell of each.
`{ROW: VARIANT - OTHER}` is what the variant takes more than another one of its row, and `{ROW: VARIANT - OTHER / 4}` a fourth of that.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import bench
import instructions

HERE = Path(__file__).resolve().parent
THRESHOLDS = HERE / "thresholds"
DOCUMENTS = [HERE / "README.md", HERE.parents[1] / "Sources" / "Connect" / "Connect.docc" / "Performance.md"]
ROWS = r"^unary 20 B, 32 in flight(, other protocols and codecs|, interceptors|, routes)?$|^(server|client) stream 20 B, interceptors$"
# Instructions may be more by this share; if they are less by the other one, the threshold should be lowered.
MORE, LESS = 0.02, 0.03
# Buffers that grow make allocations differ by this much.
ALLOCATIONS = 0.2

HEADER = """\
# What a call, or a message of a stream, takes at most: instructions and allocations. `make check-costs` compares, and
# `make costs` writes this file. Made with {machine}.
"""


class Cost(NamedTuple):
    instructions: int
    allocations: float


def machine():
    """What the figures depend on besides this repository."""
    swift = subprocess.run(["swift", "--version"], capture_output=True, text=True, check=True).stdout
    nghttp2 = subprocess.run(["pkg-config", "--modversion", "libnghttp2"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"Swift version (\S+)", swift).group(1)
    return f"Swift {version}, {' '.join(platform.libc_ver())}, nghttp2 {nghttp2.strip()}, {platform.machine()}"


def counted():
    """The costs by row and variant."""
    chosen = {
        (row.name, variant): (row, options)
        for row in bench.rows()
        if re.search(ROWS, row.name)
        for variant, options in row.clients.items()
        if options is not None
    }
    # Some variants are in several rows.
    different = {str((row.work, row.server, options)): name for name, (row, options) in chosen.items()}
    print(f"Counting {len(different)} kinds of calls under callgrind (some minutes)", flush=True)

    def count(name):
        cost = instructions.count(*chosen[name], folder)
        rounded = Cost(round(cost.instructions, -1), round(cost.allocations, 1))
        print(f"  {line(*name, rounded)}", flush=True)
        return rounded

    with instructions.counting() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = dict(zip(different, pool.map(count, different.values())))
    return {name: counts[str((row.work, row.server, options))] for name, (row, options) in chosen.items()}


def line(row, variant, cost):
    return f"{row:<56}  {variant:<17}  {cost.instructions:>7.0f}  {cost.allocations:>5.1f}"


def text_of(costs, machine):
    lines = [line(*name, cost) for name, cost in costs.items()]
    return HEADER.format(machine=machine) + "\n".join(lines) + "\n"


def parsed(text):
    """The costs in the text of a file of thresholds, and the machine that counted them."""
    fields = [re.split(r"\s{2,}", one) for one in text.splitlines() if not one.startswith("#")]
    costs = {(row, variant): Cost(int(count), float(allocations)) for row, variant, count, allocations in fields}
    return costs, re.search(r"Made with (.*)\.$", text, re.M).group(1)


def compared(costs, thresholds):
    """What is too much, and what could have a lower threshold."""
    failures = [f"{row}, {variant}: not counted any more" for row, variant in thresholds if (row, variant) not in costs]
    hints = []
    for (row, variant), cost in costs.items():
        name, threshold = f"{row}, {variant}", thresholds.get((row, variant))
        if threshold is None:
            failures.append(f"{name}: has no threshold")
            continue
        share = round(cost.instructions / threshold.instructions - 1, 6)
        if not -LESS <= share <= MORE:
            text = f"{name}: {cost.instructions:,.0f} instructions, {threshold.instructions:,.0f} is the threshold ({share:+.1%})"
            (failures if share > 0 else hints).append(text)
        difference = round(cost.allocations - threshold.allocations, 6)
        if abs(difference) > ALLOCATIONS:
            text = f"{name}: {cost.allocations:g} allocations, {threshold.allocations:g} is the threshold"
            (failures if difference > 0 else hints).append(text)
    return failures, hints


def rendered(document, costs):
    """The text of a document with its tables made anew from their templates."""

    def figures(match):
        kind, row, variant, other, parts = match.groups()
        texts = []
        for index in {None: [0], "allocations": [1], "both": [0, 1]}[kind]:
            value = costs[row, variant][index]
            if other:
                value = (value - costs[row, other][index]) / int(parts or 1)
            text = f"{abs(value):,.1f}".removesuffix(".0") if index else f"{abs(round(value, -1)):,.0f}"
            texts.append(f"{'-' if value < 0 else '+'} {text}" if other else text)
        return " | ".join(texts)

    def table(match):
        return match[1] + re.sub(r"\{(?:(allocations|both) of )?(.+?): (.+?)(?: - (.+?)(?: / (\d+))?)?\}", figures, match[2]) + match[3]

    return re.sub(r"(<!-- costs\n(.*?)-->\n).*?(<!-- end of costs -->)", table, document, flags=re.S)


def check_tables(write):
    costs, _ = parsed(THRESHOLDS.read_text())
    for path in DOCUMENTS:
        text = path.read_text()
        new = rendered(text, costs)
        if write:
            path.write_text(new)
        elif new != text:
            sys.exit(f"{path}: the tables differ from {THRESHOLDS.name}; run {Path(__file__).name} --write-tables")


def check(write):
    costs, here = counted(), machine()
    if write:
        THRESHOLDS.write_text(text_of(costs, here))
        check_tables(write=True)
        return
    thresholds, there = parsed(THRESHOLDS.read_text())
    failures, hints = compared(costs, thresholds)
    if here != there:
        print(f"The thresholds were made with {there}, but this is {here}: differences may come from that")
    for hint in hints:
        print(f"Lower the threshold (`make costs`): {hint}")
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(1 if failures else 0)


def self_test():
    def expect(found, expected):
        if found != expected:
            sys.exit(f"costs.py --self-test: expected {expected}, found {found}")

    thresholds = {("a, b", "one"): Cost(10_000, 21), ("a, b", "one, five"): Cost(30_000, 25.5)}
    expect(parsed(text_of(thresholds, "Swift 6, x")), (thresholds, "Swift 6, x"))
    one, five = thresholds
    for cost, failures, hints in [
        (Cost(10_200, 21.2), [], []),
        (Cost(9_700, 20.8), [], []),
        (Cost(10_210, 21), ["a, b, one: 10,210 instructions, 10,000 is the threshold (+2.1%)"], []),
        (Cost(9_690, 21), [], ["a, b, one: 9,690 instructions, 10,000 is the threshold (-3.1%)"]),
        (Cost(10_000, 21.3), ["a, b, one: 21.3 allocations, 21 is the threshold"], []),
        (Cost(10_000, 20), [], ["a, b, one: 20 allocations, 21 is the threshold"]),
    ]:
        expect(compared({**thresholds, one: cost}, thresholds), (failures, hints))
    expect(compared({one: thresholds[one]}, thresholds), (["a, b, one, five: not counted any more"], []))
    expect(compared(thresholds, {one: thresholds[one]}), (["a, b, one, five: has no threshold"], []))
    template = "<!-- costs\n| {a, b: one} | {a, b: one, five - one} | {a, b: one, five - one / 4} |%s\n-->\n"
    template %= " {allocations of a, b: one} | {both of a, b: one, five - one} |"
    table = "| 10,000 | + 20,000 | + 5,000 | 21 | + 20,000 | + 4.5 |\n"
    expect(rendered(f"{template}old\n<!-- end of costs -->", thresholds), f"{template}{table}<!-- end of costs -->")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--write", action="store_true", help="count, and renew the thresholds and tables")
    choice.add_argument("--tables", action="store_true", help="check that the tables of the documents agree with the thresholds")
    choice.add_argument("--write-tables", action="store_true", help="renew the tables of the documents")
    choice.add_argument("--self-test", action="store_true", help="test the comparison")
    arguments = parser.parse_args()
    if arguments.self_test:
        self_test()
    elif arguments.tables or arguments.write_tables:
        check_tables(write=arguments.write_tables)
    else:
        check(write=arguments.write)


if __name__ == "__main__":
    main()
