"""connect.test.v1.TestService by connectrpc on hypercorn: HTTP/1.1 and h2c on one port, TLS on another.

Announces `http` and `https` (ports), `unix` (path of a socket) and `authority` (PEM to trust). An argument is
the port to use for `http`. The path `/begun` tells whether the call that had the given header `x-case` has arrived,
`/given-up` whether the client has given it up. Both wait some time for that.
"""

import asyncio
import collections
import contextvars
import json
import os
import sys

import trustme
from hypercorn.asyncio import serve
from hypercorn.config import Config

import launcher

sys.path.insert(0, os.environ["CONNECT_TEST_GENERATED"])

from connect.test.v1 import test_pb2 as pb  # noqa: E402
from connect.test.v1.test_connect import TestServiceASGIApplication  # noqa: E402
from connectrpc.code import Code  # noqa: E402
from connectrpc.errors import ConnectError  # noqa: E402
from protobuf.wkt import Any  # noqa: E402

scope_of_call: contextvars.ContextVar[dict] = contextvars.ContextVar("scope")


def seen(ctx, count: int) -> pb.Seen:
    """What the server saw of a call."""
    scope = scope_of_call.get()
    result = pb.Seen(
        http_version=scope["http_version"],
        http_method=scope["method"],
        path=scope["path"],
        message_count=count,
    )
    values: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        values.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    for name, items in values.items():
        result.headers.add(name=name, values=items)
    if "connect-timeout-ms" in values:
        result.timeout_ms = int(values["connect-timeout-ms"][0])
    elif ctx.timeout_ms is not None:
        result.timeout_ms = round(ctx.timeout_ms)
    content_type = values.get("content-type", [""])[0]
    is_json = "json" in content_type or b"encoding=json" in scope["query_string"]
    result.codec = "json" if is_json else "proto"
    return result


async def begin(ctx, instruction: pb.Instruction) -> None:
    """Does what is to be done before the first message of the response."""
    for header in instruction.headers:
        for value in header.values:
            ctx.response_headers.add(header.name, value)
    for header in instruction.trailers:
        for value in header.values:
            ctx.response_trailers.add(header.name, value)
    if instruction.delay_ms:
        await asyncio.sleep(instruction.delay_ms / 1000)


def fail_if_instructed(instruction: pb.Instruction, sent: int | None = None) -> None:
    """Raises the failure that is asked for; `sent` is None when no message will follow."""
    if not instruction.HasField("failure"):
        return
    failure = instruction.failure
    if sent is not None and sent < failure.after_messages:
        return
    name = pb.Code.Name(failure.code).removeprefix("CODE_")
    code = Code.UNKNOWN if name == "UNSPECIFIED" else Code[name]
    details = [Any(type_url=detail.type_url, value=detail.value) for detail in failure.details]
    raise ConnectError(code, failure.message, details)


class Service:
    async def echo(self, request, ctx):
        instruction = request.instruction
        await begin(ctx, instruction)
        fail_if_instructed(instruction)
        return pb.EchoResponse(
            payload=request.payload if request.HasField("payload") else None,
            seen=seen(ctx, 1),
            padding=bytes(instruction.response_bytes),
        )

    async def count(self, request, ctx):
        instruction = request.instruction
        await begin(ctx, instruction)
        for index in range(instruction.message_count):
            fail_if_instructed(instruction, index)
            if index and instruction.message_delay_ms:
                await asyncio.sleep(instruction.message_delay_ms / 1000)
            yield pb.CountResponse(
                number=getattr(request, "from") + index,
                seen=seen(ctx, 1) if index == 0 else None,
                padding=bytes(instruction.response_bytes),
            )
        fail_if_instructed(instruction)

    async def sum(self, request, ctx):
        instruction = pb.Instruction()
        received = total = 0
        async for message in request:
            received += 1
            if received == 1:
                instruction = message.instruction
            total += message.number
            if instruction.finish_after and received >= instruction.finish_after:
                break
        await begin(ctx, instruction)
        fail_if_instructed(instruction)
        return pb.SumResponse(
            sum=total, seen=seen(ctx, received), padding=bytes(instruction.response_bytes)
        )

    async def converse(self, request, ctx):
        instruction = pb.Instruction()
        is_half_duplex = False
        received = answered = 0
        held = []

        async def answers(message):
            nonlocal answered
            for _ in range(max(1, instruction.message_count)):
                fail_if_instructed(instruction, answered)
                if answered and instruction.message_delay_ms:
                    await asyncio.sleep(instruction.message_delay_ms / 1000)
                yield pb.ConverseResponse(
                    index=answered,
                    payload=message.payload if message.HasField("payload") else None,
                    seen=seen(ctx, received),
                    padding=bytes(instruction.response_bytes),
                )
                answered += 1

        async for message in request:
            received += 1
            if received == 1:
                instruction = message.instruction
                is_half_duplex = (
                    instruction.half_duplex or scope_of_call.get()["http_version"].startswith("1")
                )
                if not is_half_duplex:
                    await begin(ctx, instruction)
            if is_half_duplex:
                held.append(message)
            else:
                async for answer in answers(message):
                    yield answer
            if instruction.finish_after and received >= instruction.finish_after:
                break
        if is_half_duplex:
            await begin(ctx, instruction)
        for message in held:
            async for answer in answers(message):
                yield answer
        fail_if_instructed(instruction)

    async def lookup(self, request, ctx):
        await begin(ctx, request.instruction)
        fail_if_instructed(request.instruction)
        return pb.LookupResponse(
            value=f"value of {request.key}",
            seen=seen(ctx, 1),
            padding=bytes(request.instruction.response_bytes),
        )

    async def flood(self, request, ctx):
        size = request.message_bytes or 65536
        data = b"Z" * min(size, request.total_bytes)
        offset = 0
        while offset < request.total_bytes:
            count = min(size, request.total_bytes - offset)
            yield pb.FloodResponse(offset=offset, data=data[:count])
            offset += count
            # Sending does not yield by itself, and a client that is gone has to be noticed.
            await asyncio.sleep(0)

    async def unimplemented(self, request, ctx):
        raise ConnectError(Code.UNIMPLEMENTED, "never implemented")


def make_config(plain: list[str], tls: str, folder: str) -> tuple[Config, str]:
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    certificate = authority.issue_cert(
        "localhost", "127.0.0.1", "::1", key_type=trustme.KeyType.ECDSA
    )
    config = Config()
    config.certfile = os.path.join(folder, "server.pem")
    config.keyfile = os.path.join(folder, "server.key")
    certificate.private_key_pem.write_to_path(config.keyfile)
    for blob in certificate.cert_chain_pems:
        blob.write_to_path(config.certfile, append=True)
    config.bind = [tls]
    config.insecure_bind = plain
    config.keep_alive_timeout = 60
    config.keep_alive_max_requests = 1_000_000
    config.loglevel = "WARNING"
    return config, authority.cert_pem.bytes().decode()


begun: dict[str, asyncio.Event] = collections.defaultdict(asyncio.Event)
given_up: dict[str, asyncio.Event] = collections.defaultdict(asyncio.Event)
QUESTIONS = {"/begun": begun, "/given-up": given_up}


def watched(scope, receive, send):
    """The same `receive` and `send`, which note that the request is whole, and that the client has left before
    the response was."""
    case = dict(scope["headers"]).get(b"x-case", b"").decode()
    is_whole = False

    async def watched_receive():
        message = await receive()
        if message["type"] == "http.disconnect" and case and not is_whole:
            given_up[case].set()
        if message["type"] == "http.request" and case and not message.get("more_body", False):
            begun[case].set()
        return message

    async def watched_send(message):
        nonlocal is_whole
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            is_whole = True
        await send(message)

    return watched_receive, watched_send


async def answer(events: dict[str, asyncio.Event], receive, send) -> None:
    body = b""
    is_complete = False
    while not is_complete:
        message = await receive()
        body += message.get("body", b"")
        is_complete = not message.get("more_body", False)
    try:
        await asyncio.wait_for(events[json.loads(body)["case"]].wait(), 30)
        seen = True
    except TimeoutError:
        seen = False
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"isSeen": seen}).encode()})


def main() -> None:
    folder = launcher.temporary_folder()
    plain = launcher.listen(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    tls = launcher.listen()
    path = os.path.join(folder, "server.sock")
    config, authority = make_config(
        [f"fd://{plain.fileno()}", f"unix:{path}"], f"fd://{tls.fileno()}", folder
    )
    service = TestServiceASGIApplication(Service())

    async def app(scope, receive, send):
        if scope["type"] == "http":
            scope_of_call.set(scope)
        if scope["type"] == "lifespan":
            # Start-up is over when the sockets are about to be opened; the unix one is not there before.
            return
        if scope["path"] in QUESTIONS:
            await answer(QUESTIONS[scope["path"]], receive, send)
            return
        await service(scope, *watched(scope, receive, send))

    async def run() -> None:
        server = asyncio.ensure_future(serve(app, config))
        while not os.path.exists(path) and not server.done():
            await asyncio.sleep(0.01)
        if not server.done():
            launcher.announce(
                http=launcher.port_of(plain),
                https=launcher.port_of(tls),
                unix=path,
                authority=authority,
            )
        await server

    launcher.exit_with_parent()
    asyncio.run(run())


if __name__ == "__main__":
    main()
