"""connect.test.v1.TestService by connectrpc over HTTP/3: on aioquic, with a bridge to ASGI of its own, and on hypercorn.

Announces `h3` (aioquic), `retry` (aioquic, which asks for a token first), `brief` (aioquic, with an idle timeout of a second),
`hypercorn` (ports of 127.0.0.1) and `authority` (PEM to trust).

Paths that begin with /script/ do what they say, on aioquic: /script/reset/CODE, /script/close/CODE, /script/end (answers, and ends
the connection a little later), /script/goaway (answers, and takes no later request), /script/silence, /script/size/BYTES (a body),
/script/status/CODE, /script/count (the body is how many bytes came), /script/headers/BYTES (a header of that size), /script/early (the
body is whether the request came before the handshake was complete), /script/too-early (425 if it did). So do calls with the header
`x-refuse-early`; /script/refused/CASE tells whether one with that value of the header was refused. The path /given-up?CASE tells whether the call with that header `x-case` was given up by its client.
"""

import asyncio
import os
import sys

sys.path.insert(0, os.environ["CONNECT_TEST_LAUNCHER"])

import connect_server  # noqa: E402
import launcher  # noqa: E402
import trustme  # noqa: E402
from aioquic.asyncio import QuicConnectionProtocol  # noqa: E402
from aioquic.asyncio.server import QuicServer  # noqa: E402
from aioquic.buffer import encode_uint_var  # noqa: E402
from aioquic.h3.connection import H3_ALPN, H3Connection, encode_frame  # noqa: E402
from aioquic.h3.events import DataReceived, HeadersReceived  # noqa: E402
from aioquic.quic.configuration import QuicConfiguration  # noqa: E402
from aioquic.quic.events import HandshakeCompleted, ProtocolNegotiated, StopSendingReceived, StreamReset  # noqa: E402
from hypercorn.asyncio import serve  # noqa: E402
from hypercorn.config import Config  # noqa: E402

given_up: dict[bytes, asyncio.Event] = {}
refused: set[str] = set()


class Tickets:
    """Sessions of TLS that clients can resume."""

    def __init__(self) -> None:
        self.tickets: dict[bytes, object] = {}

    def add(self, ticket) -> None:
        self.tickets[ticket.ticket] = ticket

    def pop(self, label: bytes):
        return self.tickets.pop(label, None)


class Exchange:
    """One request, as ASGI has it."""

    def __init__(self, protocol: "Server", stream_id: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.protocol = protocol
        self.stream_id = stream_id
        fields = dict(headers)
        path, _, query = fields[b":path"].partition(b"?")
        self.path = path.decode()
        self.query = query
        self.case = fields.get(b"x-case", b"")
        self.incoming: asyncio.Queue[dict] = asyncio.Queue()
        self.is_whole = False
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "3",
            "method": fields[b":method"].decode(),
            "scheme": "https",
            "path": self.path,
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [(b"host", fields[b":authority"])] + [h for h in headers if not h[0].startswith(b":")],
            "extensions": {"http.response.trailers": {}},
        }
        self.has_trailers = False
        self.is_early = not protocol.is_established

    async def receive(self) -> dict:
        return await self.incoming.get()

    async def send(self, message: dict) -> None:
        http, stream_id = self.protocol.http, self.stream_id
        if self.protocol.is_gone:
            return
        if message["type"] == "http.response.start":
            self.has_trailers = message.get("trailers", False)
            status = str(message["status"]).encode()
            http.send_headers(stream_id, [(b":status", status)] + [(n.lower(), v) for n, v in message["headers"]])
        elif message["type"] == "http.response.body":
            is_last = not message.get("more_body", False) and not self.has_trailers
            self.is_whole = self.is_whole or is_last
            http.send_data(stream_id, message.get("body", b""), is_last)
        elif message["type"] == "http.response.trailers":
            self.is_whole = True
            http.send_headers(stream_id, [(n.lower(), v) for n, v in message["headers"]], True)
        self.protocol.transmit()
        # aioquic queues without limit. Whoever sends much is not to be ahead of the client by more than a little.
        while not self.protocol.is_gone and self.protocol.waiting(stream_id) > 1 << 20:
            await asyncio.sleep(0.001)

    async def run(self) -> None:
        try:
            if self.path.startswith("/script/"):
                await self.script(self.path.split("/")[2:])
            elif self.path == "/given-up":
                await self.tell_whether_given_up()
            elif self.is_early and (case := dict(self.scope["headers"]).get(b"x-refuse-early")):
                refused.add(case.decode())
                await self.send({"type": "http.response.start", "status": 425, "headers": []})
                await self.send({"type": "http.response.body"})
            else:
                connect_server.scope_of_call.set(self.scope)
                await self.protocol.app(self.scope, self.receive, self.send)
        except Exception as error:  # noqa: BLE001
            if not self.protocol.is_gone and not self.is_whole:
                print(f"{self.path}: {error!r}", file=sys.stderr)

    async def body(self) -> bytes:
        body = b""
        while True:
            message = await self.receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                return body

    async def answer(self, body: bytes, headers: list[tuple[bytes, bytes]] = []) -> None:
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    async def tell_whether_given_up(self) -> None:
        event = given_up.setdefault(self.query, asyncio.Event())
        try:
            await asyncio.wait_for(event.wait(), 20)
            await self.answer(b"yes")
        except TimeoutError:
            await self.answer(b"no")

    async def script(self, words: list[str]) -> None:
        quic = self.protocol._quic
        match words:
            case ["reset", code]:
                quic.reset_stream(self.stream_id, int(code, 0))
                quic.stop_stream(self.stream_id, int(code, 0))
                self.protocol.transmit()
            case ["close", code]:
                quic.close(error_code=int(code, 0), reason_phrase="as asked")
                self.protocol.transmit()
            case ["end"]:
                await self.answer(b"last")
                # The client has its answer by then.
                asyncio.get_running_loop().call_later(0.1, self.protocol.close, 0x100)
            case ["goaway"]:
                await self.body()
                # The first stream that is not served.
                frame = encode_frame(7, encode_uint_var(self.stream_id + 4))
                quic.send_stream_data(self.protocol.http._local_control_stream_id, frame)
                await self.answer(b"last")
            case ["silence"]:
                await self.body()
                await asyncio.sleep(3600)
            case ["size", count]:
                await self.send({"type": "http.response.start", "status": 200, "headers": []})
                left = int(count)
                while left > 0:
                    piece = min(left, 1 << 16)
                    left -= piece
                    await self.send({"type": "http.response.body", "body": b"x" * piece, "more_body": left > 0})
            case ["status", code]:
                await self.send({"type": "http.response.start", "status": int(code), "headers": []})
                await self.send({"type": "http.response.body"})
            case ["early"]:
                await self.answer(b"yes" if self.is_early else b"no")
            case ["too-early"]:
                await self.send({"type": "http.response.start", "status": 425 if self.is_early else 200, "headers": []})
                await self.send({"type": "http.response.body"})
            case ["refused", name]:
                await self.answer(b"yes" if name in refused else b"no")
            case ["count"]:
                await self.answer(str(len(await self.body())).encode())
            case ["headers", count]:
                await self.answer(b"", [(b"x-long", b"y" * 10000)] * (int(count) // 10000))


class Server(QuicConnectionProtocol):
    app = None

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.http: H3Connection | None = None
        self.exchanges: dict[int, Exchange] = {}
        self.is_gone = False
        self.is_established = False
        self.tasks: set[asyncio.Task] = set()

    def waiting(self, stream_id: int) -> int:
        stream = self._quic._streams.get(stream_id)
        return 0 if stream is None else len(stream.sender._buffer)

    def connection_lost(self, error) -> None:
        self.end()
        super().connection_lost(error)

    def end(self) -> None:
        self.is_gone = True
        for exchange in list(self.exchanges.values()):
            self.give_up(exchange)

    def give_up(self, exchange: Exchange) -> None:
        if exchange.case and not exchange.is_whole:
            given_up.setdefault(exchange.case, asyncio.Event()).set()
        exchange.incoming.put_nowait({"type": "http.disconnect"})

    def quic_event_received(self, event) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if isinstance(event, HandshakeCompleted):
            self.is_established = True
        if type(event).__name__ == "ConnectionTerminated":
            self.end()
        if isinstance(event, (StopSendingReceived, StreamReset)) and event.stream_id in self.exchanges:
            self.give_up(self.exchanges[event.stream_id])
        if self.http is None:
            return
        for item in self.http.handle_event(event):
            if isinstance(item, HeadersReceived) and item.stream_id not in self.exchanges:
                exchange = Exchange(self, item.stream_id, item.headers)
                self.exchanges[item.stream_id] = exchange
                task = asyncio.ensure_future(exchange.run())
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
                if item.stream_ended:
                    exchange.incoming.put_nowait({"type": "http.request", "body": b"", "more_body": False})
            elif isinstance(item, (DataReceived, HeadersReceived)):
                data = item.data if isinstance(item, DataReceived) else b""
                self.exchanges[item.stream_id].incoming.put_nowait(
                    {"type": "http.request", "body": data, "more_body": not item.stream_ended}
                )


def main() -> None:
    folder = launcher.temporary_folder()
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    certificate = authority.issue_cert("localhost", "127.0.0.1", "::1", key_type=trustme.KeyType.ECDSA)
    chain, key = os.path.join(folder, "server.pem"), os.path.join(folder, "server.key")
    certificate.private_key_pem.write_to_path(key)
    for blob in certificate.cert_chain_pems:
        blob.write_to_path(chain, append=True)

    service = connect_server.TestServiceASGIApplication(connect_server.Service())

    async def app(scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            return
        connect_server.scope_of_call.set(scope)
        await service(scope, receive, send)

    Server.app = staticmethod(app)

    async def start(retry: bool = False, idle_timeout: float = 30) -> int:
        configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN, idle_timeout=idle_timeout)
        configuration.load_cert_chain(chain, key)
        loop = asyncio.get_running_loop()
        tickets = Tickets()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: QuicServer(
                configuration=configuration,
                create_protocol=Server,
                session_ticket_fetcher=tickets.pop,
                session_ticket_handler=tickets.add,
                retry=retry,
            ),
            local_addr=("127.0.0.1", 0),
        )
        return transport.get_extra_info("sockname")[1]

    async def run() -> None:
        plain, retry, brief = await start(), await start(retry=True), await start(idle_timeout=1)
        config = Config()
        # Where this queue is full, a timer of hypercorn's (0.18, QUIC) cancels whoever waits for room with an event of the
        # stream: messages are lost, or the whole server waits.
        config.max_app_queue_size = 100_000
        config.certfile, config.keyfile = chain, key
        listener = launcher.listen()
        config.bind = [f"fd://{listener.fileno()}"]
        # The same number for UDP is free as well as any other.
        config.quic_bind = [f"127.0.0.1:{launcher.port_of(listener)}"]
        config.loglevel = "WARNING"
        server = asyncio.ensure_future(serve(app, config))
        await asyncio.sleep(0.3)
        launcher.announce(
            h3=plain,
            retry=retry,
            brief=brief,
            hypercorn=launcher.port_of(listener),
            authority=authority.cert_pem.bytes().decode(),
        )
        await server

    launcher.exit_with_parent()
    asyncio.run(run())


if __name__ == "__main__":
    main()
