"""connectrpc.conformance.v1.ConformanceService by connectrpc on hypercorn: Connect, gRPC and gRPC-Web.

HTTP/1.1 and h2c on the port `http`, TLS on the ports `https`, TLS that requires a client certificate on the ports
`mtls`; of these, one offers both versions of HTTP, one HTTP/1.1 alone, and one HTTP/2 alone. HTTP/3 on the ports `h3` and
`h3_mutual` is Caddy's, which translates it to h2c. Also announces `certificate`
(the PEM to trust), `client_certificate` and `client_key`.
"""

import asyncio
import contextlib
import contextvars
import gzip
import json
import os
import ssl
import subprocess
import sys
import urllib.parse
import zlib

sys.path.insert(0, os.environ["CONNECT_TEST_LAUNCHER"])

import connectrpc  # noqa: E402

# The generated code's package is inside the library's.
connectrpc.__path__.append(os.path.join(os.environ["CONNECT_TEST_GENERATED"], "connectrpc"))

import cramjam  # noqa: E402
import h2.events  # noqa: E402
import h2.exceptions  # noqa: E402
import launcher  # noqa: E402
import trustme  # noqa: E402
from connectrpc.code import Code  # noqa: E402
from connectrpc.compression.brotli import BrotliCompression  # noqa: E402
from connectrpc.compression.gzip import GzipCompression  # noqa: E402
from connectrpc.compression.zstd import ZstdCompression  # noqa: E402
from connectrpc.conformance.v1 import config_pb2  # noqa: E402
from connectrpc.conformance.v1 import service_pb2 as pb  # noqa: E402
from connectrpc.conformance.v1.service_connect import ConformanceServiceASGIApplication  # noqa: E402
from connectrpc.errors import ConnectError  # noqa: E402
from google.protobuf.any_pb2 import Any as GoogleAny  # noqa: E402
from hypercorn.asyncio import serve  # noqa: E402
from hypercorn.config import Config  # noqa: E402
from hypercorn.protocol.h2 import H2Protocol  # noqa: E402
from protobuf.wkt import Any  # noqa: E402


class Call:
    """A call's HTTP request, and the raw response that it asked for."""

    def __init__(self, scope: dict) -> None:
        self.scope = scope
        self.raw: pb.RawHTTPResponse | None = None


current: contextvars.ContextVar[Call] = contextvars.ContextVar("call")


class DeflateCompression:
    """`deflate`, which is the zlib format."""

    def name(self) -> str:
        return "deflate"

    def compress(self, data) -> bytes:
        return zlib.compress(data)

    def decompress(self, data, read_max_bytes: int | None = None) -> bytes:
        decompressor = zlib.decompressobj()
        result = decompressor.decompress(data, (read_max_bytes or 1 << 30) + 1)
        if not decompressor.eof or decompressor.unused_data:
            raise ConnectError(Code.INVALID_ARGUMENT, "not a zlib stream")
        return result


class SnappyCompression:
    """`snappy` in the framing format."""

    def name(self) -> str:
        return "snappy"

    def compress(self, data) -> bytes:
        return bytes(cramjam.snappy.compress(data))

    def decompress(self, data, read_max_bytes: int | None = None) -> bytes:
        try:
            return bytes(cramjam.snappy.decompress(data))
        except cramjam.DecompressionError as error:
            raise ConnectError(Code.INVALID_ARGUMENT, "not a snappy stream") from error


def request_info(ctx, requests: list, first: bool = True) -> pb.ConformancePayload.RequestInfo:
    """What the server saw of a call; only the requests if this is not the first response."""
    info = pb.ConformancePayload.RequestInfo()
    for request in requests:
        packed = GoogleAny()
        packed.Pack(request)
        info.requests.append(packed)
    if not first:
        return info
    scope = current.get().scope
    values: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        values.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    # For the tests: what HTTP says of the call.
    values["x-http-method"] = [scope["method"]]
    values["x-http-version"] = [scope["http_version"]]
    for name, items in values.items():
        info.request_headers.add(name=name, value=items)
    if ctx.timeout_ms is not None:
        announced = values.get("connect-timeout-ms")
        info.timeout_ms = int(announced[0]) if announced else round(ctx.timeout_ms)
    if scope["method"] == "GET":
        query = urllib.parse.parse_qs(scope["query_string"].decode(), keep_blank_values=True)
        for name, items in query.items():
            info.connect_get_info.query_params.add(name=name, value=items)
    return info


def begin(ctx, definition) -> None:
    """Sets the metadata, or leaves the call to the raw response."""
    if definition.HasField("raw_response"):
        current.get().raw = definition.raw_response
        raise ConnectError(Code.INTERNAL, "answered raw")
    for header in definition.response_headers:
        for value in header.value:
            ctx.response_headers.add(header.name, value)
    for header in definition.response_trailers:
        for value in header.value:
            ctx.response_trailers.add(header.name, value)


def make_error(error: pb.Error, info=None) -> ConnectError:
    details = [Any(type_url=detail.type_url, value=detail.value) for detail in error.details]
    if info is not None:
        packed = GoogleAny()
        packed.Pack(info)
        details.append(Any(type_url=packed.type_url, value=packed.value))
    code = Code[config_pb2.Code.Name(error.code).removeprefix("CODE_")]
    return ConnectError(code, error.message, details)


async def answer_one(ctx, definition, requests: list, response):
    begin(ctx, definition)
    await asyncio.sleep(definition.response_delay_ms / 1000)
    info = request_info(ctx, requests)
    if definition.WhichOneof("response") == "error":
        raise make_error(definition.error, info)
    response.payload.data = definition.response_data
    response.payload.request_info.CopyFrom(info)
    return response


class Service:
    async def unary(self, request, ctx):
        return await answer_one(ctx, request.response_definition, [request], pb.UnaryResponse())

    async def idempotent_unary(self, request, ctx):
        return await answer_one(
            ctx, request.response_definition, [request], pb.IdempotentUnaryResponse()
        )

    async def unimplemented(self, request, ctx):
        raise ConnectError(Code.UNIMPLEMENTED, "never implemented")

    async def client_stream(self, request, ctx):
        requests = [message async for message in request]
        definition = requests[0].response_definition if requests else pb.UnaryResponseDefinition()
        return await answer_one(ctx, definition, requests, pb.ClientStreamResponse())

    async def server_stream(self, request, ctx):
        definition = request.response_definition
        begin(ctx, definition)
        for index, data in enumerate(definition.response_data):
            await asyncio.sleep(definition.response_delay_ms / 1000)
            response = pb.ServerStreamResponse()
            response.payload.data = data
            if index == 0:
                response.payload.request_info.CopyFrom(request_info(ctx, [request]))
            yield response
        if definition.HasField("error"):
            info = None if definition.response_data else request_info(ctx, [request])
            raise make_error(definition.error, info)

    async def bidi_stream(self, request, ctx):
        definition = pb.StreamResponseDefinition()
        is_full_duplex = False
        requests = []
        sent = 0

        async def response(seen: list):
            nonlocal sent
            await asyncio.sleep(definition.response_delay_ms / 1000)
            result = pb.BidiStreamResponse()
            result.payload.data = definition.response_data[sent]
            if seen or sent == 0:
                result.payload.request_info.CopyFrom(request_info(ctx, seen, first=sent == 0))
            sent += 1
            return result

        async for message in request:
            if not requests:
                definition = message.response_definition
                is_full_duplex = message.full_duplex
                if is_full_duplex:
                    begin(ctx, definition)
            requests.append(message)
            if not is_full_duplex:
                continue
            if sent >= len(definition.response_data):
                break
            yield await response([message])
        if not is_full_duplex:
            begin(ctx, definition)
        while sent < len(definition.response_data):
            yield await response([] if is_full_duplex else requests if sent == 0 else [])
        if definition.HasField("error"):
            raise make_error(definition.error, None if sent else request_info(ctx, requests))


# MARK: Raw responses


def contents(message: pb.MessageContents) -> bytes:
    kind = message.WhichOneof("data")
    if kind == "binary":
        data = message.binary
    elif kind == "text":
        data = message.text.encode()
    elif kind == "binary_message":
        data = message.binary_message.value
    else:
        data = b""
    if message.compression == config_pb2.COMPRESSION_GZIP:
        return gzip.compress(data)
    if message.compression == config_pb2.COMPRESSION_DEFLATE:
        return zlib.compress(data)
    return data


def raw_body(raw: pb.RawHTTPResponse) -> bytes:
    kind = raw.WhichOneof("body")
    if kind == "unary":
        return contents(raw.unary)
    if kind != "stream":
        return b""
    body = b""
    for item in raw.stream.items:
        payload = contents(item.payload)
        length = item.length if item.HasField("length") else len(payload)
        body += bytes([item.flags]) + length.to_bytes(4, "big") + payload
    return body


async def send_raw(raw: pb.RawHTTPResponse, send) -> None:
    def fields(headers) -> list:
        return [(h.name.lower().encode(), value.encode()) for h in headers for value in h.value]

    await send(
        {
            "type": "http.response.start",
            "status": raw.status_code or 200,
            "headers": fields(raw.headers),
            "trailers": bool(raw.trailers),
        }
    )
    await send({"type": "http.response.body", "body": raw_body(raw), "more_body": False})
    if raw.trailers:
        await send(
            {
                "type": "http.response.trailers",
                "headers": fields(raw.trailers),
                "more_trailers": False,
            }
        )


# MARK: Serving


async def handle_events(self, events) -> None:
    """Ignores data behind the end of a response, which is a KeyError of hypercorn's that stops the connection."""
    for event in events:
        if isinstance(event, h2.events.DataReceived) and event.stream_id not in self.streams:
            with contextlib.suppress(h2.exceptions.ProtocolError):
                self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        else:
            await original_handle_events(self, [event])


original_handle_events = H2Protocol._handle_events
H2Protocol._handle_events = handle_events

service = ConformanceServiceASGIApplication(
    Service(),
    compressions=[
        GzipCompression(),
        DeflateCompression(),
        BrotliCompression(),
        ZstdCompression(),
        SnappyCompression(),
    ],
)


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    call = Call(scope)
    current.set(call)

    async def send_unless_raw(message):
        if call.raw is None:
            await send(message)

    await service(scope, receive, send_unless_raw)
    if call.raw is not None:
        await send_raw(call.raw, send)


# What a server can offer in the TLS handshake.
OFFERS = {"both": ["h2", "http/1.1"], "http1": ["http/1.1"], "http2": ["h2"]}


def configuration(
    listener, folder: str | None = None, authority: str | None = None, offer: str = "both"
) -> Config:
    config = Config()
    config.alpn_protocols = OFFERS[offer]
    address = f"fd://{listener.fileno()}"
    if folder is not None:
        config.certfile = os.path.join(folder, "server.pem")
        config.keyfile = os.path.join(folder, "server.key")
    if authority is not None:
        config.ca_certs = authority
        config.verify_mode = ssl.CERT_REQUIRED
    config.bind = [address]
    config.keep_alive_timeout = 60
    config.keep_alive_max_requests = 1_000_000
    config.backlog = 1024
    config.loglevel = "WARNING"
    return config


def start_caddy(folder: str, backend: int, authority: str) -> tuple[int, int]:
    """Has Caddy listen for HTTP/3 on two ports, the second with client certificates, in front of `backend`."""
    # Ports that are free for TCP now; Caddy takes them for both.
    listeners = [launcher.listen(), launcher.listen()]
    ports = [launcher.port_of(listener) for listener in listeners]
    for listener in listeners:
        listener.close()

    def server(port: int, policy: dict) -> dict:
        return {
            "listen": [f"127.0.0.1:{port}"],
            "automatic_https": {"disable": True},
            "tls_connection_policies": [policy],
            # Clients of an IP address name no host.
            "strict_sni_host": False,
            "routes": [
                {
                    "handle": [
                        {
                            "handler": "reverse_proxy",
                            "flush_interval": -1,
                            "transport": {"protocol": "http", "versions": ["h2c"]},
                            "upstreams": [{"dial": f"127.0.0.1:{backend}"}],
                        }
                    ]
                }
            ],
        }

    certificate = os.path.join(folder, "server.pem")
    key = os.path.join(folder, "server.key")
    client = {"trusted_ca_certs_pem_files": [authority], "mode": "require_and_verify"}
    config = {
        "admin": {"disabled": True},
        "logging": {"logs": {"default": {"level": "ERROR"}}},
        "storage": {"module": "file_system", "root": os.path.join(folder, "caddy")},
        "apps": {
            "http": {
                "servers": {
                    "plain": server(ports[0], {}),
                    "mutual": server(ports[1], {"client_authentication": client}),
                }
            },
            "tls": {"certificates": {"load_files": [{"certificate": certificate, "key": key}]}},
        },
    }
    path = os.path.join(folder, "caddy.json")
    with open(path, "w") as file:
        json.dump(config, file)
    # Ends with this process: Caddy reads its standard input to the end, then gets a signal from the shell.
    program = os.path.join(os.path.dirname(sys.executable), "caddy")
    subprocess.Popen(
        ["/bin/sh", "-c", '"$0" run --config "$1" & cat >/dev/null; kill $!', program, path],
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
    )
    return ports[0], ports[1]


def main() -> None:
    folder = launcher.temporary_folder()
    plain = launcher.listen()
    tls = {offer: launcher.listen() for offer in OFFERS}
    mutual = {offer: launcher.listen() for offer in OFFERS}
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    server = authority.issue_cert("localhost", "127.0.0.1", "::1", key_type=trustme.KeyType.ECDSA)
    client = authority.issue_cert("client@localhost", key_type=trustme.KeyType.ECDSA)
    server.private_key_pem.write_to_path(os.path.join(folder, "server.key"))
    for blob in server.cert_chain_pems:
        blob.write_to_path(os.path.join(folder, "server.pem"), append=True)
    authority_path = os.path.join(folder, "authority.pem")
    authority.cert_pem.write_to_path(authority_path)

    async def run() -> None:
        servers = [
            serve(app, configuration(plain)),
            *(serve(app, configuration(tls[offer], folder, None, offer)) for offer in OFFERS),
            *(serve(app, configuration(mutual[offer], folder, authority_path, offer)) for offer in OFFERS),
        ]
        running = asyncio.gather(*servers)
        await asyncio.sleep(0)
        h3, h3_mutual = start_caddy(folder, launcher.port_of(plain), authority_path)
        for port in (h3, h3_mutual):
            while True:
                with contextlib.suppress(OSError):
                    (await asyncio.open_connection("127.0.0.1", port))[1].close()
                    break
                await asyncio.sleep(0.02)
        # The sockets have been listening all the time.
        launcher.announce(
            http=launcher.port_of(plain),
            h3=h3,
            h3_mutual=h3_mutual,
            https={offer: launcher.port_of(tls[offer]) for offer in OFFERS},
            mtls={offer: launcher.port_of(mutual[offer]) for offer in OFFERS},
            certificate=authority.cert_pem.bytes().decode(),
            client_certificate=b"".join(b.bytes() for b in client.cert_chain_pems).decode(),
            client_key=client.private_key_pem.bytes().decode(),
        )
        await running

    launcher.exit_with_parent()
    asyncio.run(run())


if __name__ == "__main__":
    main()
