"""Any number of grpcio servers, each on an address of its own, run by commands.

Announces the process id `pid`. Commands have `do`, and `name`, the name of a server:

- `start` with `address` (default: the address it had before) and `tls` (paths `certificate` and `key`, and `roots` to demand
  certificates of clients): answered with `address`.
- `stop` with `grace` in seconds: GOAWAY, then the end once no call is left, or the time is over.
- `behave` with some of `code` (calls fail with it; 0 for none), `delay` in seconds, and `utilization` (each answer reports this
  load, and 100 calls per second).
- `stats`: `started` and `ended` calls.
- `certificates` with `folder`, `client` (a name), `server` (names) and `renewal`: writes certificates of a new authority, for servers
  and clients; as a renewal, only a new certificate for the client, of the same authority. Answered with paths: `roots`, `server`,
  `serverKey`, `client`, `clientKey`. A name with `://` is a URI.

Each server answers every unary call, whatever the path, with a `google.protobuf.StringValue`: a JSON object with the `server`,
the `path`, the `metadata` of the call, and the `identity` (names in the client's certificate). Metadata of the call can ask for
more: `x-delay` (milliseconds before the answer), `x-code` (a status in place of the answer), and `x-fail-attempts` (the first so
many attempts get this status; the others succeed).
"""

import concurrent.futures
import json
import os
import sys
import threading
import time

import grpc
import trustme
from cryptography import x509
from google.protobuf import wrappers_pb2

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../EndToEndTests/Servers"))
import launcher  # noqa: E402

from xds.data.orca.v3 import orca_load_report_pb2 as orca  # noqa: E402

# trustme knows names of hosts and addresses only.
name_in_certificate = trustme._identity_string_to_x509
trustme._identity_string_to_x509 = lambda name: (
    x509.UniformResourceIdentifier(name) if "://" in name else name_in_certificate(name)
)

CODES = {code.value[0]: code for code in grpc.StatusCode}


class MeshServer(grpc.GenericRpcHandler):
    def __init__(self, name: str):
        self.name = name
        self.address = ""
        self.tls: dict | None = None
        self.server: grpc.Server | None = None
        self.code = 0
        self.delay = 0.0
        self.utilization: float | None = None
        self.started = self.ended = 0
        self.lock = threading.Lock()

    def start(self, address: str = "", tls: dict | None = None) -> str:
        address = address or self.address
        self.tls = tls or self.tls
        server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(max_workers=64),
            handlers=[self],
            options=[("grpc.so_reuseport", 0)],
        )
        if self.tls:
            roots = open(self.tls["roots"], "rb").read() if "roots" in self.tls else None
            pair = (open(self.tls["key"], "rb").read(), open(self.tls["certificate"], "rb").read())
            port = server.add_secure_port(
                address, grpc.ssl_server_credentials([pair], roots, roots is not None)
            )
        else:
            port = server.add_insecure_port(address)
        server.start()
        self.server = server
        self.address = f"{address.rsplit(':', 1)[0]}:{port}"
        return self.address

    def stop(self, grace: float = 0) -> None:
        server, self.server = self.server, None
        if server:
            server.stop(grace).wait(grace + 5)

    def service(self, details):
        path = details.method

        def handle(request: bytes, context) -> bytes:
            with self.lock:
                self.started += 1
            try:
                return self.respond(path, context)
            finally:
                with self.lock:
                    self.ended += 1

        return grpc.unary_unary_rpc_method_handler(handle)

    def respond(self, path: str, context) -> bytes:
        metadata = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
        trailers: list[tuple[str, str | bytes]] = [("x-server", self.name)]
        if self.utilization is not None:
            load = orca.OrcaLoadReport(rps_fractional=100, application_utilization=self.utilization)
            trailers.append(("endpoint-load-metrics-bin", load.SerializeToString()))
        context.set_trailing_metadata(trailers)
        delay = self.delay + int(metadata.get("x-delay", "0")) / 1000
        if delay:
            time.sleep(delay)
        code = self.code or int(metadata.get("x-code", "0"))
        attempts = int(metadata.get("grpc-previous-rpc-attempts", "0"))
        if "x-fail-attempts" in metadata and attempts >= int(metadata["x-fail-attempts"]):
            code = self.code
        if code:
            context.abort(CODES[code], "as the test wants")
        text = json.dumps(
            {
                "server": self.name,
                "path": path,
                "metadata": metadata,
                "identity": [name.decode() for name in context.peer_identities() or []],
            }
        )
        return wrappers_pb2.StringValue(value=text).SerializeToString()


servers: dict[str, MeshServer] = {}
authorities: dict[str, trustme.CA] = {}


def write(folder: str, name: str, *texts: bytes) -> str:
    """Writes a file at once, as those do who renew certificates."""
    path = os.path.join(folder, name)
    with open(path + ".new", "wb") as file:
        file.write(b"".join(texts))
    os.rename(path + ".new", path)
    return path


def certificates(folder: str, client: str, server_names: list[str], is_renewal: bool) -> dict:
    if not is_renewal:
        authority = authorities[folder] = trustme.CA()
        write(folder, "roots.pem", authority.cert_pem.bytes())
        server = authority.issue_cert(*server_names)
        write(folder, "server.pem", *(pem.bytes() for pem in server.cert_chain_pems))
        write(folder, "server.key", server.private_key_pem.bytes())
    issued = authorities[folder].issue_cert(client)
    write(folder, "client.key", issued.private_key_pem.bytes())
    write(folder, "client.pem", *(pem.bytes() for pem in issued.cert_chain_pems))
    files = {"roots": "roots.pem", "server": "server.pem", "serverKey": "server.key"}
    files |= {"client": "client.pem", "clientKey": "client.key"}
    return {key: os.path.join(folder, file) for key, file in files.items()}


def run(command: dict) -> dict:
    do, name = command["do"], command["name"]
    if do == "start":
        server = servers.setdefault(name, MeshServer(name))
        return {"address": server.start(command.get("address", ""), command.get("tls"))}
    if do == "certificates":
        return certificates(command["folder"], command["client"], command["server"], command["renewal"])
    server = servers[name]
    if do == "stop":
        server.stop(command.get("grace", 0))
    elif do == "behave":
        server.code = command.get("code", server.code)
        server.delay = command.get("delay", server.delay)
        server.utilization = command.get("utilization", server.utilization)
    elif do == "stats":
        return {"started": server.started, "ended": server.ended}
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
