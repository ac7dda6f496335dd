"""Control planes: aggregated discovery and load reports, state of the world, run by commands.

Announces the process id `pid`. Commands have `do`, and `plane`, the name of a control plane:

- `start` with `address` (default: the address that the plane had before, else a free port of 127.0.0.1) and `tls` (an object with the
  paths `certificate` and `key`, and `roots` to demand certificates of clients): answered with `address`. What the plane has stays.
- `stop`: ends the server; streams break.
- `set` with `type` (a key of TYPES) and `resources`: all resources of the type. Each is protobuf's JSON without `@type`, or
  `{"name", "base64"}` with any bytes, in a wrapper with the name.
- `put` with `type` and `resources`: adds them or takes the place of those with the same names. `remove` with `type` and `names`.
- `send` with `type`, `resources`: one response at once on each stream, whatever is subscribed.
- `hold` with `types`: no responses for them; those that wait are sent when a later `hold` leaves the type out.
- `refuse` with `code`: each stream ends with this status at once; 0 for none. `close`: ends all streams.
- `records` from the number `from`: what clients sent; with `summary`: what came of each type's last response.
- `interval` with `seconds`: of load reports; `reports`: those that came.
"""

import base64
import concurrent.futures
import hashlib
import itertools
import json
import os
import queue
import sys
import threading
import time

import grpc
from google.protobuf import any_pb2, json_format

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../EndToEndTests/Servers"))
import launcher  # noqa: E402

import xds_messages  # noqa: E402
from envoy.service.discovery.v3 import ads_pb2_grpc, discovery_pb2  # noqa: E402
from envoy.service.load_stats.v3 import lrs_pb2, lrs_pb2_grpc  # noqa: E402

PREFIX = "type.googleapis.com/"
TYPES = {
    "listener": PREFIX + "envoy.config.listener.v3.Listener",
    "route": PREFIX + "envoy.config.route.v3.RouteConfiguration",
    "cluster": PREFIX + "envoy.config.cluster.v3.Cluster",
    "endpoints": PREFIX + "envoy.config.endpoint.v3.ClusterLoadAssignment",
}
NAMES = {url: name for name, url in TYPES.items()}
CODES = {code.value[0]: code for code in grpc.StatusCode}


def name_of(resource: dict) -> str:
    return resource.get("name") or resource.get("cluster_name") or resource.get("clusterName", "")


def packed(url: str, resource: dict) -> any_pb2.Any:
    """A resource as it is sent."""
    if "base64" in resource:
        # With its name outside, as the name inside may not be readable.
        wrapper = discovery_pb2.Resource(name=resource.get("name", ""))
        wrapper.resource.type_url = resource.get("type_url", url)
        wrapper.resource.value = base64.b64decode(resource["base64"])
        result = any_pb2.Any()
        result.Pack(wrapper)
        return result
    return json_format.ParseDict({"@type": url} | resource, any_pb2.Any(), descriptor_pool=xds_messages.pool)


class Stream:
    """A client's stream. Confined to its plane's lock, but for the queue."""

    def __init__(self, number: int):
        self.number = number
        self.outgoing: queue.Queue = queue.Queue()
        self.names: dict[str, list[str]] = {}
        self.sent: dict[str, dict[str, bytes]] = {}
        self.nonces: dict[str, str] = {}
        self.waiting: set[str] = set()


class Plane(ads_pb2_grpc.AggregatedDiscoveryServiceServicer, lrs_pb2_grpc.LoadReportingServiceServicer):
    def __init__(self, name: str = ""):
        self.name = name
        self.lock = threading.RLock()
        self.address = ""
        self.server: grpc.Server | None = None
        self.resources: dict[str, dict[str, any_pb2.Any]] = {url: {} for url in TYPES.values()}
        self.versions = dict.fromkeys(TYPES.values(), 0)
        self.streams: dict[int, Stream] = {}
        self.streamCount = itertools.count(1)
        self.nonceCount = itertools.count(1)
        self.records: list[dict] = []
        self.held: set[str] = set()
        self.code = 0
        self.interval = 1.0
        self.reports: list[dict] = []
        self.last_change = time.monotonic()
        # (stream, type) of responses that wait for an ACK or NACK, with the nonce.
        self.unanswered: dict[tuple[int, str], str] = {}
        # By nonce: what was sent.
        self.responses: dict[str, dict] = {}

    # Serving

    def start(self, address: str = "", tls: dict | None = None) -> str:
        address = address or self.address or "127.0.0.1:0"
        server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(max_workers=64), options=[("grpc.so_reuseport", 0)]
        )
        ads_pb2_grpc.add_AggregatedDiscoveryServiceServicer_to_server(self, server)
        lrs_pb2_grpc.add_LoadReportingServiceServicer_to_server(self, server)
        if tls:
            roots = open(tls["roots"], "rb").read() if "roots" in tls else None
            pair = (open(tls["key"], "rb").read(), open(tls["certificate"], "rb").read())
            credentials = grpc.ssl_server_credentials([pair], roots, roots is not None)
            port = server.add_secure_port(address, credentials)
        else:
            port = server.add_insecure_port(address)
        server.start()
        self.server = server
        self.address = f"{address.rsplit(':', 1)[0]}:{port}"
        return self.address

    def stop(self) -> None:
        server, self.server = self.server, None
        if server:
            self.close()
            server.stop(0).wait(5)

    def close(self) -> None:
        with self.lock:
            for stream in self.streams.values():
                stream.outgoing.put(None)

    def StreamAggregatedResources(self, requests, context):
        if self.code:
            context.abort(CODES[self.code], "as the test wants")
        with self.lock:
            stream = Stream(next(self.streamCount))
            self.streams[stream.number] = stream
            self.last_change = time.monotonic()

        def read() -> None:
            try:
                for request in requests:
                    self.receive(stream, request)
            except Exception:
                pass
            stream.outgoing.put(None)

        threading.Thread(target=read, daemon=True).start()
        try:
            while (response := stream.outgoing.get()) is not None:
                yield response
        finally:
            with self.lock:
                self.streams.pop(stream.number, None)
                for key in [key for key in self.unanswered if key[0] == stream.number]:
                    del self.unanswered[key]
                self.last_change = time.monotonic()
        context.abort(grpc.StatusCode.UNAVAILABLE, "as the test wants")

    def StreamLoadStats(self, requests, context):
        for number, request in enumerate(requests):
            with self.lock:
                self.reports.append(json_format.MessageToDict(request))
            if number == 0:
                response = lrs_pb2.LoadStatsResponse(send_all_clusters=True)
                response.load_reporting_interval.FromNanoseconds(int(self.interval * 1e9))
                yield response

    # The protocol

    def receive(self, stream: Stream, request) -> None:
        url = request.type_url
        with self.lock:
            self.last_change = time.monotonic()
            last = stream.nonces.get(url, "")
            is_stale = bool(request.response_nonce) and request.response_nonce != last
            names = list(request.resource_names)
            record = {
                "stream": stream.number,
                "type": NAMES.get(url, url),
                "version": request.version_info,
                "nonce": request.response_nonce,
                "names": names,
                "stale": is_stale,
            }
            if request.HasField("error_detail"):
                record["error"] = request.error_detail.message
                record["code"] = request.error_detail.code
            if request.HasField("node"):
                record["node"] = json_format.MessageToDict(
                    request.node, preserving_proto_field_name=True
                )
            self.records.append(record)
            if is_stale:
                return
            if request.response_nonce:
                self.unanswered.pop((stream.number, url), None)
                response = self.responses.get(request.response_nonce)
                if response is not None and "outcome" not in response:
                    response["outcome"] = "nack" if "error" in record else "ack"
                    response["error"] = record.get("error", "")
            before = stream.names.get(url, [])
            stream.names[url] = names
            for name in set(before) - set(names):
                stream.sent.get(url, {}).pop(name, None)
            if set(names) - set(before):
                self.push(stream, url, is_new=True)

    def push(self, stream: Stream, url: str, is_new: bool = False) -> None:
        """Sends what the client wants of a type, if that is another set than it has."""
        names = stream.names.get(url)
        if names is None or url not in self.resources:
            return
        if url in self.held:
            stream.waiting.add(url)
            return
        found = {name: self.resources[url][name] for name in names if name in self.resources[url]}
        digests = {
            name: hashlib.sha256(any.SerializeToString(deterministic=True)).digest()
            for name, any in found.items()
        }
        is_complete = url in (TYPES["listener"], TYPES["cluster"])
        has_changed = digests != stream.sent.get(url, {})
        if not (has_changed or (is_new and is_complete)):
            return
        if not found and not is_complete:
            stream.sent[url] = {}
            return
        stream.sent[url] = digests
        self.respond(stream, url, list(found.values()), list(found))

    def respond(self, stream: Stream, url: str, resources: list, names: list[str]) -> None:
        nonce = f"n{next(self.nonceCount)}"
        stream.nonces[url] = nonce
        self.unanswered[(stream.number, url)] = nonce
        self.last_change = time.monotonic()
        self.responses[nonce] = {"type": NAMES.get(url, url), "names": names}
        response = discovery_pb2.DiscoveryResponse(
            version_info=f"{self.versions.get(url, 0)}", type_url=url, nonce=nonce, resources=resources
        )
        response.control_plane.identifier = self.name
        stream.outgoing.put(response)

    # Commands

    def set(self, type: str, resources: list[dict], replaces: bool = True) -> None:
        url = TYPES[type]
        with self.lock:
            table = {} if replaces else dict(self.resources[url])
            for resource in resources:
                table[name_of(resource)] = packed(url, resource)
            self.change(url, table)

    def remove(self, type: str, names: list[str]) -> None:
        url = TYPES[type]
        with self.lock:
            self.change(url, {k: v for k, v in self.resources[url].items() if k not in names})

    def change(self, url: str, table: dict) -> None:
        self.resources[url] = table
        self.versions[url] += 1
        self.last_change = time.monotonic()
        for stream in list(self.streams.values()):
            self.push(stream, url)

    def send(self, type: str, resources: list[dict]) -> None:
        url = TYPES.get(type, type)
        with self.lock:
            self.versions[url] = self.versions.get(url, 0) + 1
            for stream in list(self.streams.values()):
                self.respond(
                    stream, url, [packed(url, r) for r in resources], [name_of(r) for r in resources]
                )

    def hold(self, types: list[str]) -> None:
        with self.lock:
            self.held = {TYPES[type] for type in types}
            for stream in list(self.streams.values()):
                for url in stream.waiting - self.held:
                    stream.waiting.discard(url)
                    self.push(stream, url, is_new=True)

    def summary(self) -> dict:
        """By type: the names that the first stream subscribes to, and what came of the type's last response."""
        with self.lock:
            result: dict = {}
            for stream in self.streams.values():
                for url, names in stream.names.items():
                    response = self.responses.get(stream.nonces.get(url, ""), {})
                    result[NAMES.get(url, url)] = {
                        "names": sorted(names),
                        "outcome": response.get("outcome", "none"),
                        "error": response.get("error", ""),
                        "sent": sorted(response.get("names", [])),
                    }
                break
            return result

    def is_quiet(self, seconds: float) -> bool:
        """Whether nothing waits for an answer, and nothing has happened for so long."""
        with self.lock:
            return not self.unanswered and time.monotonic() - self.last_change > seconds

    def wait_for_quiet(self, seconds: float = 0.08, limit: float = 2) -> bool:
        end = time.monotonic() + limit
        while time.monotonic() < end:
            if self.is_quiet(seconds):
                return True
            time.sleep(0.01)
        return False


planes: dict[str, Plane] = {}


def run(command: dict) -> dict:
    do, name = command["do"], command.get("plane", "")
    if do == "start":
        plane = planes.setdefault(name, Plane(name))
        return {"address": plane.start(command.get("address", ""), command.get("tls"))}
    plane = planes[name]
    if do == "stop":
        plane.stop()
    elif do in ("set", "put"):
        plane.set(command["type"], command["resources"], do == "set")
    elif do == "remove":
        plane.remove(command["type"], command["names"])
    elif do == "send":
        plane.send(command["type"], command["resources"])
    elif do == "hold":
        plane.hold(command["types"])
    elif do == "refuse":
        plane.code = command["code"]
    elif do == "close":
        plane.close()
    elif do == "records":
        with plane.lock:
            return {
                "records": plane.records[command.get("from", 0) :],
                "summary": plane.summary(),
                "streams": len(plane.streams),
                "quiet": plane.is_quiet(command.get("quiet", 0.08)),
            }
    elif do == "interval":
        plane.interval = command["seconds"]
    elif do == "reports":
        with plane.lock:
            return {"reports": list(plane.reports)}
    else:
        raise ValueError(do)
    return {}


def answer(command: dict, reply) -> None:
    try:
        reply(**run(command))
    except Exception as error:
        reply(error=repr(error))


if __name__ == "__main__":
    launcher.take_commands(answer)
    launcher.announce(pid=os.getpid())
    threading.Event().wait()
