"""HTTP/3 servers on aioquic, one for each certificate in a folder.

The folder has `N.pem`, the server's own certificate first, and `N.key`, for N from 0. Announces `ports`, in this order. Each
request is answered with the name that the client asked for in the TLS handshake (SNI); empty for none. `/end` also ends the
connection. `/count` is answered with the number of the server's requests before.
"""

import asyncio
import functools
import os
import sys

sys.path.insert(0, os.environ["CONNECT_TEST_LAUNCHER"])

import launcher  # noqa: E402
from aioquic import tls  # noqa: E402
from aioquic.asyncio import QuicConnectionProtocol  # noqa: E402
from aioquic.asyncio.server import QuicServer  # noqa: E402
from aioquic.h3.connection import H3_ALPN, H3Connection  # noqa: E402
from aioquic.h3.events import DataReceived, HeadersReceived  # noqa: E402
from aioquic.quic.configuration import QuicConfiguration  # noqa: E402
from aioquic.quic.events import ProtocolNegotiated  # noqa: E402

# aioquic reads the name, and does not keep it. Tests connect one after the other.
asked_for = [""]
pull_client_hello = tls.pull_client_hello


def pull_and_keep(buffer):
    hello = pull_client_hello(buffer)
    asked_for[0] = hello.server_name or ""
    return hello


tls.pull_client_hello = pull_and_keep


class Facts:
    """What the connections of one server share."""

    def __init__(self) -> None:
        self.count = 0
        self.tickets: dict[bytes, object] = {}

    def add(self, ticket) -> None:
        self.tickets[ticket.ticket] = ticket

    def pop(self, label: bytes):
        return self.tickets.pop(label, None)


class Server(QuicConnectionProtocol):
    def __init__(self, facts: Facts, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.facts = facts
        self.http: H3Connection | None = None
        self.paths: dict[int, bytes] = {}
        self.name = ""

    def quic_event_received(self, event) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
            self.name = asked_for[0]
        if self.http is None:
            return
        for item in self.http.handle_event(event):
            if isinstance(item, HeadersReceived):
                self.paths[item.stream_id] = dict(item.headers)[b":path"]
            if isinstance(item, (HeadersReceived, DataReceived)) and item.stream_ended:
                self.answer(item.stream_id, self.paths.pop(item.stream_id))

    def answer(self, stream_id: int, path: bytes) -> None:
        text = str(self.facts.count) if path == b"/count" else self.name
        self.facts.count += 1
        self.http.send_headers(stream_id, [(b":status", b"200")])
        self.http.send_data(stream_id, text.encode(), True)
        self.transmit()
        if path == b"/end":
            # The client has its answer by then.
            asyncio.get_running_loop().call_later(0.1, self.close, 0x100)


async def run(folder: str) -> None:
    ports = []
    loop = asyncio.get_running_loop()
    while os.path.exists(chain := os.path.join(folder, f"{len(ports)}.pem")):
        configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
        configuration.load_cert_chain(chain, os.path.join(folder, f"{len(ports)}.key"))
        transport, _ = await loop.create_datagram_endpoint(
            lambda configuration=configuration, facts=Facts(): QuicServer(
                configuration=configuration,
                create_protocol=functools.partial(Server, facts),
                session_ticket_fetcher=facts.pop,
                session_ticket_handler=facts.add,
            ),
            local_addr=("127.0.0.1", 0),
        )
        ports.append(transport.get_extra_info("sockname")[1])
    launcher.announce(ports=ports)
    await asyncio.Event().wait()


if __name__ == "__main__":
    launcher.exit_with_parent()
    asyncio.run(run(sys.argv[1]))
