"""Checks the signatures of RequestSigner with Python's hashlib and hmac.

Announces `http`, hypercorn for Connect's unary calls over HTTP/1.1 and h2c with the signature in a header, and `grpc`, a server by
h2 that reads the trailers of requests, for gRPC. If a request's signature is right, the first answers with its body, the second with
an empty message for each of its messages; else both answer with `unauthenticated`. The header `x-signed-in` of an answer says where
the signature was.
"""

import asyncio
import hashlib
import hmac
import json
from email.utils import parsedate_to_datetime

import h2.config
import h2.connection
import h2.events
from hypercorn.asyncio import serve
from hypercorn.config import Config

import launcher

SECRETS = {"k1": b"a secret of the tests", "k2": bytes(range(100))}


def problem(method: str, target: str, headers: dict[str, str], trailers: dict[str, str], body: bytes) -> str:
    """Why the signature is wrong; empty if it is right."""
    secret = SECRETS.get(headers.get("x-signature-key", ""))
    if secret is None:
        return "no such key"
    try:
        parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        return "no date"
    text = "\n".join([method, target, headers["date"], hashlib.sha256(body).hexdigest()])
    expected = hmac.new(secret, text.encode(), "sha256").hexdigest()
    signature = trailers.get("x-signature") or headers.get("x-signature") or ""
    return "" if hmac.compare_digest(expected, signature) else f"wrong signature '{signature}'"


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    query = scope["query_string"].decode()
    target = scope["raw_path"].decode().split("?")[0] + (f"?{query}" if query else "")
    wrong = problem(scope["method"], target, headers, {}, body)
    status, kind = (401, b"application/json") if wrong else (200, b"application/proto")
    answer = json.dumps({"code": "unauthenticated", "message": wrong}).encode() if wrong else body
    fields = [(b"content-type", kind), (b"x-signed-in", b"header")]
    if not wrong and "content-encoding" in headers:
        fields.append((b"content-encoding", headers["content-encoding"].encode()))
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": answer})


def message_count(body: bytes) -> int:
    count = start = 0
    while start < len(body):
        start += 5 + int.from_bytes(body[start + 1 : start + 5], "big")
        count += 1
    return count


class Call:
    def __init__(self, headers):
        self.headers = dict(headers)
        self.trailers: dict[str, str] = {}
        self.body = b""


class Connection(asyncio.Protocol):
    def __init__(self):
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.h2 = h2.connection.H2Connection(config)
        self.calls: dict[int, Call] = {}
        self.answers: dict[int, tuple[bytes, list]] = {}

    def connection_made(self, transport):
        self.transport = transport
        self.h2.initiate_connection()
        self.flush()

    def data_received(self, data):
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                self.calls[event.stream_id] = Call(event.headers)
            elif isinstance(event, h2.events.TrailersReceived):
                self.calls[event.stream_id].trailers = dict(event.headers)
            elif isinstance(event, h2.events.DataReceived):
                self.calls[event.stream_id].body += event.data
                if event.flow_controlled_length:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamReset):
                self.calls.pop(event.stream_id, None)
                self.answers.pop(event.stream_id, None)
            elif isinstance(event, h2.events.StreamEnded):
                self.answer(event.stream_id)
        for stream in list(self.answers):
            self.send(stream)
        self.flush()

    def answer(self, stream: int) -> None:
        call = self.calls.pop(stream)
        wrong = problem(
            call.headers[":method"], call.headers[":path"], call.headers, call.trailers, call.body
        )
        place = "trailer" if "x-signature" in call.trailers else "header"
        fields = [(":status", "200"), ("content-type", "application/grpc"), ("x-signed-in", place)]
        self.h2.send_headers(stream, fields)
        status = [("grpc-status", "16"), ("grpc-message", wrong)] if wrong else [("grpc-status", "0")]
        self.answers[stream] = (b"" if wrong else bytes(5) * message_count(call.body), status)

    def send(self, stream: int) -> None:
        body, status = self.answers[stream]
        while body:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if room <= 0:
                self.answers[stream] = (body, status)
                return
            self.h2.send_data(stream, body[:room])
            body = body[room:]
        del self.answers[stream]
        self.h2.send_headers(stream, status, end_stream=True)

    def flush(self) -> None:
        self.transport.write(self.h2.data_to_send())


async def run() -> None:
    plain = launcher.listen()
    config = Config()
    config.insecure_bind = config.bind = [f"fd://{plain.fileno()}"]
    config.loglevel = "WARNING"
    grpc = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    launcher.announce(http=launcher.port_of(plain), grpc=grpc.sockets[0].getsockname()[1])
    await serve(app, config)


if __name__ == "__main__":
    launcher.exit_with_parent()
    asyncio.run(run())
