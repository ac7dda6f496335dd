"""What grpcio's own xDS client does with the configurations of generate.py: the oracle.

Announces the process id `pid`. Starts the servers of the scenarios in this process. Commands:

- `reference` with `seed`: grpcio goes through the scenario against a control plane of its own. Answered with `steps`: each has
  `calls`, in the order of the scenario's calls, with `servers` and `codes` (how often each came), and the `summary` of the
  control plane (see control_plane.py).
- `prepare` with `seed`: a control plane for another client, with what the first step has. Answered with `address` and `scenario`.
- `step` with `seed` and `index`: the next step of that control plane.
- `settle` with `seed`: waits until the client has answered all responses. Answered with `summary`.
- `finish` with `seed`: ends that control plane.

    oracle.py FIRST LAST

runs grpcio over the seeds, twice each, and prints where it does not do the same twice.
"""

import collections
import concurrent.futures
import json
import os
import sys
import threading
import time

import grpc
from google.protobuf import wrappers_pb2

import control_plane
import generate
import mesh_servers
from control_plane import launcher

CREDENTIALS = {"type": "insecure"}
SETTLE = 0.15
PLACES = {"a": 1, "b": 2, "c": 3}
NAMES = ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "c0", "c1", "c2"]


def start_servers() -> dict[str, str]:
    for name in NAMES:
        server = mesh_servers.servers[name] = mesh_servers.MeshServer(name)
        server.start(f"127.0.{PLACES[name[0]]}.{int(name[1]) + 1}:0")
    local = mesh_servers.servers["local"] = mesh_servers.MeshServer("local")
    local.start("127.0.0.1:0")
    return {name: server.address for name, server in mesh_servers.servers.items()}


def bootstrap(address: str) -> dict:
    return {
        "xds_servers": [
            {"server_uri": address, "channel_creds": [CREDENTIALS], "server_features": ["xds_v3"]}
        ],
        "node": {"id": "oracle", "cluster": "tests", "locality": {"region": "r", "zone": "z0"}},
    }


class Client:
    """A channel of grpcio."""

    def __init__(self, target: str, settings: dict):
        options = [
            ("grpc.TEST_ONLY_DO_NOT_USE_IN_PROD.xds_bootstrap_config", json.dumps(settings)),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self.channel = grpc.insecure_channel(target, options)
        self.messages: collections.Counter = collections.Counter()

    def once(self, call: dict) -> tuple[str, str]:
        """The server and the code of a call."""
        method = self.channel.unary_unary(call["path"])
        try:
            answer = method(
                b"", timeout=call.get("timeout", 5), metadata=[tuple(pair) for pair in call["metadata"]]
            )
            return json.loads(wrappers_pb2.StringValue.FromString(answer).value)["server"], "OK"
        except grpc.RpcError as error:
            if "as the test wants" not in error.details():
                self.messages[f"{error.code().name}: {error.details()}"] += 1
            trailers = dict(error.trailing_metadata() or [])
            return trailers.get("x-server", ""), error.code().name

    def make(self, call: dict, count: int | None = None) -> dict:
        """Makes a call that often, or until it is unlikely that more calls reach another server or get another code."""
        servers: collections.Counter = collections.Counter()
        codes: collections.Counter = collections.Counter()
        made = since = 0
        while made < (count or call["count"]) or (
            not count and not call.get("codes") and since < 10 * (len(servers) + len(codes))
        ):
            server, code = self.once(call)
            made += 1
            since = since + 1 if code in codes and (not server or server in servers) else 0
            codes[code] += 1
            if server:
                servers[server] += 1
        return {"servers": dict(servers), "codes": dict(codes)}

    def close(self) -> None:
        self.channel.close()


def apply(plane: control_plane.Plane, step: dict) -> None:
    with plane.lock:
        for type in ("endpoints", "cluster", "route", "listener"):
            plane.set(type, step["resources"][type])


def reference(seed: int, addresses: dict[str, str]) -> dict:
    scenario = generate.scenario(seed, addresses)
    plane = control_plane.Plane(f"reference-{seed}")
    plane.start()
    client = Client(scenario["target"], bootstrap(plane.address))
    steps = []
    try:
        for index, step in enumerate(scenario["steps"]):
            apply(plane, step)
            if index == 0:
                client.once(step["calls"][0])
            plane.wait_for_quiet()
            client.messages.clear()
            # Connections are opened by the first calls of some policies.
            for call in step["calls"]:
                if not any(key == "x-delay" for key, _ in call["metadata"]):
                    client.make(call, 2)
            time.sleep(SETTLE)
            calls = [client.make(call) for call in step["calls"]]
            plane.wait_for_quiet()
            steps.append({"calls": calls, "summary": plane.summary(), "messages": dict(client.messages)})
    finally:
        client.close()
        plane.stop()
    return {"steps": steps}


def support(steps: list[dict]) -> list:
    """What has to be the same each time."""
    return [
        (
            [
                ([] if sum(call["codes"].values()) <= 16 else sorted(call["servers"]), sorted(call["codes"]))
                for call in step["calls"]
            ],
            {type: (one["names"], one["outcome"]) for type, one in step["summary"].items()},
        )
        for step in steps
    ]


def run(command: dict, addresses: dict[str, str]) -> dict:
    do, seed = command["do"], command.get("seed", 0)
    name = f"client-{seed}"
    if do == "reference":
        return reference(seed, addresses)
    if do == "prepare":
        scenario = generate.scenario(seed, addresses)
        plane = control_plane.planes[name] = control_plane.Plane(name)
        plane.start()
        apply(plane, scenario["steps"][0])
        calls = [step["calls"] for step in scenario["steps"]]
        return {
            "address": plane.address,
            "target": scenario["target"],
            "features": scenario["features"],
            "calls": calls,
            "hasListener": [bool(step["resources"]["listener"]) for step in scenario["steps"]],
        }
    plane = control_plane.planes[name]
    if do == "step":
        apply(plane, generate.scenario(seed, addresses)["steps"][command["index"]])
    elif do == "settle":
        plane.wait_for_quiet()
        return {"summary": plane.summary()}
    elif do == "finish":
        del control_plane.planes[name]
        plane.stop()
    else:
        raise ValueError(do)
    return {}


def compare(first: int, last: int) -> None:
    addresses = start_servers()
    messages: collections.Counter = collections.Counter()
    errors: collections.Counter = collections.Counter()
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = {
            seed: [pool.submit(reference, seed, addresses) for _ in range(2)]
            for seed in range(first, last)
        }
        for seed, pair in jobs.items():
            one, two = (job.result()["steps"] for job in pair)
            if support(one) != support(two):
                print(f"seed {seed} differs:")
                for index, (a, b) in enumerate(zip(support(one), support(two))):
                    for call, (x, y) in enumerate(zip(a[0], b[0])):
                        if x != y:
                            print(f"  step {index} call {call}: {x} {y}")
                    if a[1] != b[1]:
                        print(f"  step {index}: {a[1]} {b[1]}")
            for step in one:
                for type, summary in step["summary"].items():
                    if summary["error"]:
                        errors[f"{type}: {summary['error']}"] += 1
                for message, count in step["messages"].items():
                    messages[message] += count
    print(f"{time.monotonic() - began:.1f} s")
    for title, table in (("NACKs", errors), ("messages", messages)):
        print(title)
        for text, count in table.most_common():
            print(f"  {count} {text}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        compare(int(sys.argv[1]), int(sys.argv[2]))
        os._exit(0)
    known = start_servers()
    workers = concurrent.futures.ThreadPoolExecutor(8)

    def answer(command: dict, reply) -> None:
        def work() -> None:
            try:
                reply(**run(command, known))
            except Exception as error:
                reply(error=repr(error))

        workers.submit(work)

    launcher.take_commands(answer)
    launcher.announce(pid=os.getpid())
    threading.Event().wait()
