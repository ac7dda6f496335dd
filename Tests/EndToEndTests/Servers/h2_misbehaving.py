"""An HTTP/2 server (h2c) that breaks a rule, chosen by the last component of the request's path.

Announces the ports `normal`, `one_stream` (MAX_CONCURRENT_STREAMS is 1) and `closed_window` (once the client
has acknowledged the settings, a stream's window for what it sends is 0; no window ever opens). `ok`,
`stream-ok` and those that begin with `grpc-` answer with what they were sent, so that any message works whose
request and response look alike. `stats` tells what happened so far.
"""

import asyncio
import json
from collections import Counter

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

import launcher

Errors = h2.errors.ErrorCodes
Settings = h2.settings.SettingCodes


class Statistics:
    """What happened on all ports since the server started."""

    def __init__(self) -> None:
        self.connections = 0
        self.requests: Counter[str] = Counter()
        self.resets: dict[str, list[int]] = {}
        """By name, the error codes of the client's RST_STREAM frames."""
        self.seen: Counter[tuple[str, str]] = Counter()
        """By name and the header `x-case`, how many requests there were."""


class Request:
    def __init__(self, stream: int, headers: dict[str, str]) -> None:
        self.stream = stream
        self.headers = headers
        path = headers.get(":path", "").split("?")[0]
        self.name = path.rsplit("/", 1)[-1]
        self.body = bytearray()
        self.attempt = 0


def envelope(message: bytes, flags: int = 0) -> bytes:
    return bytes([flags]) + len(message).to_bytes(4, "big") + message


class Connection(asyncio.Protocol):
    def __init__(self, statistics: Statistics, settings: dict[Settings, int]) -> None:
        self.statistics = statistics
        self.is_window_closed = settings.get(Settings.INITIAL_WINDOW_SIZE) == 0
        config = h2.config.H2Configuration(
            client_side=False,
            header_encoding="utf-8",
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
        self.h2 = h2.connection.H2Connection(config)
        self.settings = settings
        self.requests: dict[int, Request] = {}
        self.waiting: list[asyncio.Future] = []
        self.tasks: set[asyncio.Task] = set()

    # From the client

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.statistics.connections += 1
        self.h2.initiate_connection()
        if self.settings:
            self.h2.update_settings(self.settings)
        self.flush()

    def connection_lost(self, error) -> None:
        for task in self.tasks:
            task.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            events = self.h2.receive_data(data)
        except h2.exceptions.ProtocolError:
            self.flush()
            self.transport.close()
            return
        for event in events:
            self.handle(event)
        self.flush()

    def handle(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            request = Request(event.stream_id, dict(event.headers))
            key = (request.name, request.headers.get("x-case", ""))
            request.attempt = self.statistics.seen[key]
            self.statistics.seen[key] += 1
            self.statistics.requests[request.name] += 1
            self.requests[event.stream_id] = request
            behaviour = EARLY.get(request.name)
            if behaviour:
                self.start(behaviour, request)
        elif isinstance(event, h2.events.DataReceived):
            self.requests[event.stream_id].body += event.data
            if not self.is_window_closed:
                self.acknowledge(event)
        elif isinstance(event, h2.events.StreamEnded):
            request = self.requests[event.stream_id]
            if request.name not in EARLY:
                self.start(BEHAVIOURS.get(request.name, not_found), request)
        elif isinstance(event, h2.events.StreamReset):
            request = self.requests.get(event.stream_id)
            if request and event.remote_reset:
                self.statistics.resets.setdefault(request.name, []).append(int(event.error_code))
            self.wake()
        elif isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            self.wake()
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.transport.close()

    def acknowledge(self, event: h2.events.DataReceived) -> None:
        try:
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        except h2.exceptions.ProtocolError:
            pass  # The stream is over.

    def start(self, behaviour, request: Request) -> None:
        async def run() -> None:
            try:
                await behaviour(self, request)
                self.flush()
            except h2.exceptions.ProtocolError:
                pass  # The client was faster and has reset the stream or left.

        task = asyncio.ensure_future(run())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # To the client

    def flush(self) -> None:
        data = self.h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def wake(self) -> None:
        for future in self.waiting:
            if not future.done():
                future.set_result(None)
        self.waiting = []

    def head(self, request: Request, status: int = 200, end: bool = False, **headers: str) -> None:
        fields = [(":status", str(status))]
        fields += [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.h2.send_headers(request.stream, fields, end_stream=end)
        self.flush()

    async def body(self, request: Request, data: bytes, end: bool = False) -> None:
        """Sends as the client's windows allow."""
        while True:
            window = self.h2.local_flow_control_window(request.stream)
            count = min(len(data), window, self.h2.max_outbound_frame_size)
            if count or not data:
                is_last = count == len(data)
                self.h2.send_data(request.stream, data[:count], end_stream=end and is_last)
                self.flush()
                data = data[count:]
                if is_last:
                    return
            else:
                future = asyncio.get_running_loop().create_future()
                self.waiting.append(future)
                await future

    def trailers(self, request: Request, **fields: str) -> None:
        self.h2.send_headers(
            request.stream,
            [(name.replace("_", "-"), value) for name, value in fields.items()],
            end_stream=True,
        )
        self.flush()

    def reset(self, request: Request, code: Errors) -> None:
        self.h2.reset_stream(request.stream, code)
        self.flush()

    def raw_reset(self, request: Request, code: Errors) -> None:
        """RST_STREAM on a stream that is over."""
        frame = (4).to_bytes(3, "big") + bytes([3, 0]) + request.stream.to_bytes(4, "big")
        self.write_raw(frame + int(code).to_bytes(4, "big"))

    def write_raw(self, data: bytes) -> None:
        self.flush()
        self.transport.write(data)

    def content_type(self, request: Request) -> str:
        return request.headers.get("content-type", "application/proto")


# Unary behaviours


async def ok(connection: Connection, request: Request) -> None:
    connection.head(request, content_type=connection.content_type(request))
    await connection.body(request, bytes(request.body), end=True)


async def slow(connection: Connection, request: Request) -> None:
    await asyncio.sleep(0.1)
    await ok(connection, request)


async def stats(connection: Connection, request: Request) -> None:
    facts = connection.statistics
    text = json.dumps(
        {"connections": facts.connections, "requests": facts.requests, "resets": facts.resets}
    )
    connection.head(request, content_type="application/json")
    await connection.body(request, text.encode(), end=True)


async def not_found(connection: Connection, request: Request) -> None:
    connection.head(request, status=404, end=True)


async def never(connection: Connection, request: Request) -> None:
    pass


def reset_with(code: Errors):
    async def behaviour(connection: Connection, request: Request) -> None:
        connection.reset(request, code)

    return behaviour


async def refused_once(connection: Connection, request: Request) -> None:
    if request.attempt == 0:
        connection.reset(request, Errors.REFUSED_STREAM)
    else:
        await ok(connection, request)


async def reset_after_headers(connection: Connection, request: Request) -> None:
    connection.head(request, content_type=connection.content_type(request))
    connection.reset(request, Errors.INTERNAL_ERROR)


async def reset_half_body(connection: Connection, request: Request) -> None:
    connection.head(
        request, content_type=connection.content_type(request), content_length="100"
    )
    await connection.body(request, b"\x0a\x00" * 25)
    connection.reset(request, Errors.INTERNAL_ERROR)


async def short_body(connection: Connection, request: Request) -> None:
    connection.head(
        request, content_type=connection.content_type(request), content_length="100"
    )
    await connection.body(request, b"\x0a\x00" * 25, end=True)


async def goaway_once(connection: Connection, request: Request) -> None:
    """The first time, says that this stream was not processed, and that the connection is over."""
    if request.attempt == 0:
        connection.h2.close_connection(last_stream_id=max(0, request.stream - 2))
        connection.flush()
        await asyncio.sleep(0.05)
        connection.transport.close()
    else:
        await ok(connection, request)


async def goaway_open(connection: Connection, request: Request) -> None:
    """Says GOAWAY, then still answers this stream."""
    goaway = (8).to_bytes(3, "big") + bytes([7, 0]) + bytes(4)
    connection.write_raw(goaway + request.stream.to_bytes(4, "big") + bytes(4))
    await asyncio.sleep(0.05)
    await ok(connection, request)


async def goaway_error(connection: Connection, request: Request) -> None:
    """Ends the connection with an error while this stream is open."""
    connection.h2.close_connection(
        error_code=Errors.INTERNAL_ERROR, last_stream_id=request.stream
    )
    connection.flush()
    connection.transport.close()


async def bad_gateway(connection: Connection, request: Request) -> None:
    connection.head(request, status=502, content_type="text/html")
    await connection.body(request, b"<html><body>502 Bad Gateway</body></html>", end=True)


async def close_before_headers(connection: Connection, request: Request) -> None:
    connection.transport.close()


async def close_mid_stream(connection: Connection, request: Request) -> None:
    connection.head(request, content_type=connection.content_type(request))
    await connection.body(request, envelope(bytes(10))[:8])
    connection.transport.close()


async def truncated_frame(connection: Connection, request: Request) -> None:
    """A DATA frame that says 100 bytes and has 10, then the connection's end."""
    connection.head(request, content_type=connection.content_type(request))
    frame = (100).to_bytes(3, "big") + bytes([0, 0]) + request.stream.to_bytes(4, "big")
    connection.write_raw(frame + bytes(10))
    connection.transport.close()


async def garbage(connection: Connection, request: Request) -> None:
    connection.write_raw(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n" * 20)


async def data_on_stream_zero(connection: Connection, request: Request) -> None:
    connection.write_raw((4).to_bytes(3, "big") + bytes([0, 0]) + bytes(4) + bytes(4))


async def huge_headers(connection: Connection, request: Request) -> None:
    connection.head(
        request,
        content_type=connection.content_type(request),
        **{f"x_{index}": "v" * 1000 for index in range(200)},
    )
    await connection.body(request, bytes(request.body), end=True)


async def early_hints(connection: Connection, request: Request) -> None:
    connection.head(request, status=103, link="</x>; rel=preload")
    await ok(connection, request)


async def early_answer(connection: Connection, request: Request) -> None:
    """Answers before the request has ended, then resets with NO_ERROR. RFC 9113, section 8.1."""
    connection.head(request, content_type=connection.content_type(request))
    await connection.body(request, b"", end=True)
    connection.reset(request, Errors.NO_ERROR)


# Stream behaviours, in the Connect protocol


async def stream_ok(connection: Connection, request: Request) -> None:
    connection.head(request, content_type=connection.content_type(request))
    await connection.body(request, bytes(request.body))
    await connection.body(request, envelope(b"{}", flags=2), end=True)


async def stream_no_end(connection: Connection, request: Request) -> None:
    connection.head(request, content_type=connection.content_type(request))
    await connection.body(request, bytes(request.body), end=True)


async def stream_truncated_envelope(connection: Connection, request: Request) -> None:
    connection.head(request, content_type=connection.content_type(request))
    await connection.body(request, bytes(request.body) + envelope(bytes(100))[:15], end=True)


async def stream_reset(connection: Connection, request: Request) -> None:
    connection.head(request, content_type=connection.content_type(request))
    await connection.body(request, bytes(request.body))
    connection.reset(request, Errors.INTERNAL_ERROR)


async def stream_after_end(connection: Connection, request: Request) -> None:
    """A message after the end-of-stream message."""
    connection.head(request, content_type=connection.content_type(request))
    await connection.body(request, envelope(b"{}", flags=2) + bytes(request.body), end=True)


# gRPC


def grpc_answer(
    body=bytes,
    head: dict[str, str] | None = None,
    trailers: dict[str, str] | None = None,
    after=None,
):
    """Answers with `body` of the request's body, between `head` and `trailers`."""

    async def behaviour(connection: Connection, request: Request) -> None:
        connection.head(request, **({"content_type": "application/grpc+proto"} | (head or {})))
        await connection.body(request, body(request.body), end=trailers is None)
        if trailers is not None:
            connection.trailers(request, **trailers)
        if after:
            after(connection, request)

    return behaviour


def grpc_trailers_only(**fields: str):
    async def behaviour(connection: Connection, request: Request) -> None:
        connection.head(request, end=True, **({"content_type": "application/grpc+proto"} | fields))

    return behaviour


def grpc_status_before_end(empty_trailers: bool, **fields: str):
    """A status in the headers, which are not the end of the stream: DATA or HEADERS without anything follow."""

    async def behaviour(connection: Connection, request: Request) -> None:
        connection.head(request, **({"content_type": "application/grpc+proto"} | fields))
        if empty_trailers:
            connection.write_raw(bytes([0, 0, 0, 1, 5]) + request.stream.to_bytes(4, "big"))
        else:
            await connection.body(request, b"", end=True)

    return behaviour


def with_flags(flags: int):
    return lambda body: bytes([flags]) + bytes(body[1:])


OK = {"grpc_status": "0"}

GRPC = {
    "ok": grpc_answer(trailers=OK),
    "no-trailers": grpc_answer(),
    "reset-after-trailers": grpc_answer(
        trailers=OK, after=lambda connection, request: connection.raw_reset(request, Errors.NO_ERROR)
    ),
    # A status in the headers of a response with a body.
    "status-in-headers": grpc_answer(head=OK),
    "error-in-headers": grpc_answer(head={"grpc_status": "5"}),
    "other-status-in-headers": grpc_answer(head={"grpc_status": "5"}, trailers=OK),
    "other-status-in-trailers": grpc_answer(head=OK, trailers={"grpc_status": "9", "grpc_message": "m"}),
    # Trailers alone.
    "trailers-only": grpc_trailers_only(grpc_status="5", grpc_message="not%20here"),
    "trailers-only-ok": grpc_trailers_only(**OK),
    "headers-only": grpc_trailers_only(),
    "status-before-empty-data": grpc_status_before_end(False, grpc_status="5", grpc_message="not%20here"),
    "ok-before-empty-data": grpc_status_before_end(False, **OK),
    "status-before-empty-trailers": grpc_status_before_end(True, grpc_status="5", grpc_message="not%20here"),
    "ok-before-empty-trailers": grpc_status_before_end(True, **OK),
    # What is in the trailers.
    "no-status": grpc_answer(trailers={"x_other": "1"}),
    "unknown-status": grpc_answer(trailers={"grpc_status": "77", "grpc_message": "later"}),
    "status-no-number": grpc_answer(trailers={"grpc_status": "five", "grpc_message": "later"}),
    "bad-escapes": grpc_answer(
        trailers={"grpc_status": "13", "grpc_message": "100%25 %zz %e4%b8%ad %f %"}
    ),
    "details-no-base64": grpc_answer(
        trailers={"grpc_status": "9", "grpc_message": "m", "grpc_status_details_bin": "*&*"}
    ),
    "details-no-status": grpc_answer(
        trailers={"grpc_status": "9", "grpc_message": "m", "grpc_status_details_bin": "////"}
    ),
    # The details' code and message are preferred: 10 and "inner".
    "details-differ": grpc_answer(
        trailers={
            "grpc_status": "9",
            "grpc_message": "outer",
            "grpc_status_details_bin": "CAoSBWlubmVy",
        }
    ),
    "huge-trailers": grpc_answer(
        trailers=OK | {f"x_{index}": "v" * 1000 for index in range(200)}
    ),
    # Messages.
    "no-message": grpc_answer(body=lambda body: b"", trailers=OK),
    "two-messages": grpc_answer(body=lambda body: bytes(body) * 2, trailers=OK),
    "truncated-message": grpc_answer(
        body=lambda body: envelope(bytes(100))[:15], trailers=OK
    ),
    "truncated-prefix": grpc_answer(body=lambda body: bytes(body) + b"\0\0", trailers=OK),
    "truncated-message-with-error": grpc_answer(
        body=lambda body: envelope(bytes(100))[:15], trailers={"grpc_status": "14", "grpc_message": "m"}
    ),
    "endless-message": grpc_answer(body=lambda body: b"\0\xff\xff\xff\xff", trailers=OK),
    "bad-flags": grpc_answer(body=with_flags(2), trailers=OK),
    "web-trailers": grpc_answer(body=lambda body: bytes(body) + envelope(b"", 0x80), trailers=OK),
    # Compression.
    "unknown-encoding": grpc_answer(
        body=with_flags(1), head={"grpc_encoding": "lz99"}, trailers=OK
    ),
    "unused-unknown-encoding": grpc_answer(head={"grpc_encoding": "lz99"}, trailers=OK),
    "compressed-without-encoding": grpc_answer(body=with_flags(1), trailers=OK),
    "compressed-identity": grpc_answer(
        body=with_flags(1), head={"grpc_encoding": "identity"}, trailers=OK
    ),
    "broken-gzip": grpc_answer(
        body=lambda body: envelope(b"this is not gzip", 1),
        head={"grpc_encoding": "gzip"},
        trailers=OK,
    ),
    # The head.
    "foreign-type": grpc_answer(head={"content_type": "application/json"}, trailers=OK),
    "other-codec": grpc_answer(head={"content_type": "application/grpc+thrift"}, trailers=OK),
    "plain-type": grpc_answer(head={"content_type": "application/grpc"}, trailers=OK),
    "type-with-parameter": grpc_answer(
        head={"content_type": "application/grpc+proto; charset=utf-8"}, trailers=OK
    ),
}


BEHAVIOURS = {
    "ok": ok,
    "slow": slow,
    "stats": stats,
    "refused": reset_with(Errors.REFUSED_STREAM),
    "refused-once": refused_once,
    "enhance-your-calm": reset_with(Errors.ENHANCE_YOUR_CALM),
    "internal-error": reset_with(Errors.INTERNAL_ERROR),
    "cancel": reset_with(Errors.CANCEL),
    "inadequate-security": reset_with(Errors.INADEQUATE_SECURITY),
    "no-error": reset_with(Errors.NO_ERROR),
    "reset-after-headers": reset_after_headers,
    "reset-half-body": reset_half_body,
    "short-body": short_body,
    "goaway-once": goaway_once,
    "goaway-open": goaway_open,
    "goaway-error": goaway_error,
    "bad-gateway": bad_gateway,
    "close-before-headers": close_before_headers,
    "close-mid-stream": close_mid_stream,
    "truncated-frame": truncated_frame,
    "garbage": garbage,
    "data-on-stream-zero": data_on_stream_zero,
    "huge-headers": huge_headers,
    "early-hints": early_hints,
    "stream-ok": stream_ok,
    "stream-no-end": stream_no_end,
    "stream-truncated-envelope": stream_truncated_envelope,
    "stream-reset": stream_reset,
    "stream-after-end": stream_after_end,
}
BEHAVIOURS |= {f"grpc-{name}": behaviour for name, behaviour in GRPC.items()}
"""Those that start when the request has ended."""

EARLY = {
    "never": never,
    "early-answer": early_answer,
    "refused-early": reset_with(Errors.REFUSED_STREAM),
}
"""Those that start at the request's headers."""

PORTS = {
    "normal": {},
    "one_stream": {Settings.MAX_CONCURRENT_STREAMS: 1},
    "closed_window": {Settings.INITIAL_WINDOW_SIZE: 0},
}


async def main() -> None:
    loop = asyncio.get_running_loop()
    statistics = Statistics()
    ports = {}
    for name, settings in PORTS.items():
        listener = launcher.listen()
        ports[name] = launcher.port_of(listener)
        await loop.create_server(lambda s=settings: Connection(statistics, s), sock=listener)
    launcher.exit_with_parent()
    launcher.announce(**ports)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
