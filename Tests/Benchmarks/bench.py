#!/usr/bin/env python3
"""Runs the clients under test side by side and prints what each call costs.

    bench.py [--rows REGEX] [--repetitions N] [--seconds S] [--save FILE] [--compare FILE]

Each row is one kind of work. The clients of a row take turns, so that what else the machine does hits all of them; what is
printed is the median over the repetitions, and how far the repetitions lie apart. Clients run on core 0, the server on core 1.
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
BIN = HERE / ".build" / "release"
SERVICE = "/connect.bench.v1.BenchService"
# Where `make venv` puts grpcio.
PYTHON = HERE.parents[1] / ".venv" / "bin" / "python"


@dataclass(frozen=True)
class Server:
    """How the canned server answers."""

    size: int = 20
    gzip: bool = False
    tls: bool = False


@dataclass
class Row:
    name: str
    # The options that all clients know, by their names in Workload.swift.
    work: dict = field(default_factory=dict)
    # The clients, by name: the options of ConnectBench, or None for a peer, whose name has options behind it.
    clients: dict = field(default_factory=dict)
    server: Server = Server()


def unary(name, work, server=Server(), peers=("h2load", "grpc-swift-2"), **clients):
    return Row(name, {"kind": "unary", **work}, {**{peer: None for peer in peers}, **clients}, server)


def rows():
    basic = {
        "connect": "",
        "connect, callback": "--api callback",
        "grpc": "--protocol grpc",
        "grpc, callback": "--protocol grpc --api callback",
    }
    kept = {"connect, freed memory kept": "--keeps-freed-memory"}
    for size, in_flight in [(20, 1), (20, 32), (20, 128), (20, 1000), (1000, 32), (1000, 128), (65536, 32), (1 << 20, 1)]:
        peers = ("h2load", "grpc-swift-2") if in_flight <= 128 else ("h2load",)
        if size == 20 and in_flight in (1, 32):
            peers += ("grpcio",)
        yield unary(
            f"unary {size} B, {in_flight} in flight",
            {"size": 20 if size > 1000 else size, "in-flight": in_flight},
            Server(size),
            peers,
            **basic,
            **(kept if size > 1000 else {}),
        )
    yield unary(
        "unary 20 B, 32 in flight, on the concurrency pool",
        {"size": 20, "in-flight": 32},
        peers=("h2load",),
        **{"connect": "--pool", "grpc": "--pool --protocol grpc"},
    )
    yield unary(
        "unary 20 B, 256 in flight, event loops",
        {"size": 20, "in-flight": 256},
        peers=(),
        **{
            "1 loop": "",
            "2 loops": "--loops 2",
            "1 loop, pool": "--pool",
            "2 loops, pool": "--loops 2 --pool",
        },
    )
    yield unary(
        "unary 20 B, 32 in flight, other protocols and codecs",
        {"size": 20, "in-flight": 32},
        peers=("h2load",),
        **{
            "connect": "",
            "connect, JSON": "--codec json",
            "grpcWeb": "--protocol grpcWeb",
            "grpcWeb, JSON": "--protocol grpcWeb --codec json",
        },
    )
    yield unary(
        "unary 20 B, 32 in flight, interceptors",
        {"size": 20, "in-flight": 32},
        peers=(),
        **{
            "none": "",
            "1 closure": "--interceptors 1",
            "5 closure": "--interceptors 5",
            "1 async": "--interceptors 1 --form async",
            "5 async": "--interceptors 5 --form async",
            "5 unused": "--interceptors 5 --form unused",
            "recommended": "--recommended defaults",
            "recommended, all": "--recommended all",
        },
    )
    yield unary(
        "unary 20 B, 32 in flight, routes",
        {"size": 20, "in-flight": 32},
        peers=(),
        **{
            "none": "",
            "1 route": "--fleet route",
            "1 route, xDS": "--fleet mesh",
            "none, 3 servers": "--fleet servers",
            "1 route, xDS, 3 servers": "--fleet meshOfThree",
        },
    )
    for count in (1, 5):
        yield unary(
            f"unary 20 B, 32 in flight, gRPC, interceptors: {count}",
            {"size": 20, "in-flight": 32},
            peers=(f"grpc-swift-2 --interceptors {count}",),
            **{
                "closure": f"--protocol grpc --interceptors {count}",
                "async": f"--protocol grpc --interceptors {count} --form async",
            },
        )
    yield unary(
        "unary 1000 B, 32 in flight, gzip",
        {"size": 1000, "in-flight": 32},
        Server(1000, gzip=True),
        (),
        **{"connect": "--gzip", "grpc": "--gzip --protocol grpc"},
    )
    yield unary(
        "unary 20 B, 1 in flight, HTTP/1.1",
        {"size": 20, "in-flight": 1},
        peers=("h2load --h1",),
        **{"connect": "--http1", "connect, callback": "--http1 --api callback", "grpcWeb": "--http1 --protocol grpcWeb"},
    )
    yield unary(
        "unary 20 B, 32 in flight, TLS",
        {"size": 20, "in-flight": 32},
        Server(20, tls=True),
        ("h2load",),
        **{"connect": "--roots {roots}", "grpc": "--roots {roots} --protocol grpc"},
    )
    yield from http3_rows()
    streams = {"grpc-swift-2": None, "connect": "", "grpc": "--protocol grpc"}
    for size in (20, 16384):
        messages = 10_000 if size == 20 else 1_000
        for framing in ("", ", a frame each") if size == 20 else ("",):
            work = {"kind": "server-stream", "in-flight": 1, "messages": messages}
            if framing:
                work["framed-each"] = True
            clients = streams if size == 20 else {**streams, **kept}
            yield Row(f"server stream {size} B{framing}", work, clients, Server(size))
        work = {"kind": "client-stream", "in-flight": 1, "messages": messages, "size": size}
        yield Row(f"client stream {size} B", work, streams, Server(20))
    closures = {"none": "", "1 closure": "--interceptors 1", "5 closure": "--interceptors 5"}
    for kind in ("server-stream", "client-stream"):
        yield Row(
            f"{kind.replace('-', ' ')} 20 B, interceptors",
            {"kind": kind, "in-flight": 1, "messages": 10_000, "size": 20},
            closures,
        )
    for size in (20, 16384):
        work = {"kind": "bidi", "in-flight": 1, "size": size}
        yield Row(f"bidi round trip {size} B", work, streams, Server(size))
    yield Row("10,000 idle streams", {"kind": "idle", "in-flight": 10_000}, {"connect": "", "grpc": "--protocol grpc"})


def http3_rows():
    """HTTP/3 beside HTTP/2, both with TLS."""
    clients = {"HTTP/2": "--roots {roots}", "HTTP/3": "--roots {roots} --http3"}
    for size, in_flight in [(20, 1), (20, 32), (20, 128)]:
        work = {"size": size, "in-flight": in_flight}
        yield unary(f"http3: unary {size} B, {in_flight} in flight", work, Server(size, tls=True), (), **clients)
    work = {"kind": "server-stream", "in-flight": 1, "messages": 1_000}
    yield Row("http3: server stream 16384 B", work, clients, Server(16384, tls=True))
    work = {"kind": "client-stream", "in-flight": 1, "messages": 1_000, "size": 16384}
    jumbo = {"HTTP/3, datagrams of 8940 B": clients["HTTP/3"] + " --datagram-size 8940"}
    yield Row("http3: client stream 16384 B", work, {**clients, **jumbo}, Server(20, tls=True))
    connections = {name: options + " --connections" for name, options in clients.items()}
    work = {"kind": "idle", "in-flight": 500}
    yield Row("http3: 500 idle connections", work, connections, Server(20, tls=True))


class RunningServer:
    """A canned server of its own process, on core 1."""

    def __init__(self, server, certificates):
        command = [BIN / "CannedServer", "--size", str(server.size)]
        if server.gzip:
            command.append("--gzip")
        if server.tls:
            command += ["--tls", certificates / "server.pem", certificates / "server.key"]
        self.process = subprocess.Popen(
            pinned(1, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.port = int(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)
        self.process.stdout.close()


def pinned(core, command):
    if (os.cpu_count() or 1) < 2 or shutil.which("taskset") is None:
        return [str(part) for part in command]
    return ["taskset", "-c", str(core), *(str(part) for part in command)]


def make_certificates(folder):
    """One certificate that is its own root."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "server.key",
         "-out", folder / "server.pem"],
        check=True,
        capture_output=True,
    )


def run_client(name, options, row, port, arguments, folder):
    """What one run has shown, as a dictionary of figures."""
    if name.startswith("h2load"):
        return run_h2load(row, port, arguments, folder, http1="--h1" in name)
    if name == "grpcio":
        command = [PYTHON, HERE / "grpcio_bench.py"]
    elif options is None:
        command, options = [BIN / "GRPCSwiftBench"], name.partition(" ")[2]
    else:
        command = [BIN / "ConnectBench"]
    command += ["--port", port, "--seconds", arguments.seconds]
    for key, value in row.work.items():
        command += [f"--{key}"] if value is True else [f"--{key}", value]
    command += (options or "").format(roots=folder / "server.pem").split()
    output = subprocess.run(
        pinned(0, command), capture_output=True, text=True, timeout=120 + 3 * arguments.seconds
    )
    if output.returncode != 0:
        raise SystemExit(f"{name} failed in '{row.name}': {output.stderr.strip()}")
    return json.loads(output.stdout.strip().splitlines()[-1])


def run_h2load(row, port, arguments, folder, http1):
    size = row.work.get("size", 20)
    body = folder / "body"
    # A protobuf message: a tag, a length, the data.
    length = bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])
    body.write_bytes(b"\x0a" + length + b"x" * size)
    log = folder / "h2load.log"
    log.unlink(missing_ok=True)
    in_flight = row.work["in-flight"]
    # So many that they take about as long as the others, by a first guess from the size.
    per_second = 15_000 if in_flight == 1 else 200_000
    count = int(arguments.seconds * per_second / (1 + row.server.size / 2_000))
    scheme = "https" if row.server.tls else "http"
    command = ["h2load", "-n", max(count, in_flight), "-c", 1, "-m", 1 if http1 else in_flight, "-d", body,
               "-H", "content-type: application/proto", "--log-file", log]
    if http1:
        command.append("--h1")
    command.append(f"{scheme}://127.0.0.1:{port}{SERVICE}/Unary")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.run(pinned(0, command), capture_output=True, text=True, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if output.returncode != 0 or " 0 failed" not in output.stdout:
        raise SystemExit(f"h2load failed in '{row.name}': {output.stdout[-500:]}{output.stderr}")
    times = sorted(int(line.split()[2]) for line in log.read_text().splitlines())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "count": len(times),
        "cpu_us": cpu * 1e6 / len(times),
        "p50_us": times[len(times) // 2],
        "p99_us": times[len(times) * 99 // 100],
    }


def measure(arguments):
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_certificates(folder)
        for row in rows():
            if not re.search(arguments.rows, row.name):
                continue
            runs = {client: [] for client in row.clients}
            for _ in range(arguments.repetitions):
                for client, options in row.clients.items():
                    server = RunningServer(row.server, folder)
                    try:
                        runs[client].append(run_client(client, options, row, server.port, arguments, folder))
                    finally:
                        server.stop()
            for client, figures in runs.items():
                result = {"row": row.name, "client": client}
                for key in figures[0]:
                    values = [run[key] for run in figures]
                    result[key] = round(statistics.median(values), 3)
                    if key in ("cpu_us", "kb_per_stream", "kb_per_connection"):
                        result[key + "_spread"] = [round(min(values), 3), round(max(values), 3)]
                results.append(result)
            print_row(row.name, [result for result in results if result["row"] == row.name])
    return results


def print_row(name, results):
    print(f"\n{name}")
    base = {result["client"].split()[0]: result.get("cpu_us") for result in results}
    for result in results:
        line = f"  {result['client']:<22}"
        if "kb_per_stream" in result:
            line += f"{result['kb_per_stream']:8.2f} kB a stream  {result['client_kb']:8.0f} kB the client and a connection"
        elif "kb_per_connection" in result:
            line += f"{result['kb_per_connection']:8.1f} kB a connection, {result['heap_kb_per_connection']:.1f} kB of it allocated"
        else:
            low, high = result["cpu_us_spread"]
            line += f"{result['cpu_us']:8.2f} us CPU  ({low:.2f} to {high:.2f})"
            line += f"  p50 {result['p50_us']:8.0f}  p99 {result['p99_us']:8.0f}"
            if "allocations" in result:
                line += f"  {result['allocations']:6.1f} allocations"
            for peer in ("h2load", "grpc-swift-2", "HTTP/2"):
                if base.get(peer) and result["client"].split()[0] != peer:
                    line += f"  {result['cpu_us'] / base[peer]:5.2f} x {peer}"
        print(line)
    sys.stdout.flush()


def compare(results, file):
    earlier = {}
    for line in Path(file).read_text().splitlines():
        result = json.loads(line)
        earlier[result["row"], result["client"]] = result
    print(f"\nAgainst {file}")
    for result in results:
        before = earlier.get((result["row"], result["client"]))
        if before is None or not before.get("cpu_us") or "cpu_us" not in result:
            continue
        change = result["cpu_us"] / before["cpu_us"] - 1
        print(f"  {result['row']:<52} {result['client']:<22} {before['cpu_us']:8.2f} -> {result['cpu_us']:8.2f} us  {change:+7.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="", help="only rows whose name has this regular expression")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each run measures")
    parser.add_argument("--save", help="where to write the results, a line of JSON each")
    parser.add_argument("--compare", help="a file that --save wrote, to compare with")
    arguments = parser.parse_args()
    results = measure(arguments)
    if arguments.save:
        Path(arguments.save).write_text("".join(json.dumps(result) + "\n" for result in results))
    if arguments.compare:
        compare(results, arguments.compare)


if __name__ == "__main__":
    main()
