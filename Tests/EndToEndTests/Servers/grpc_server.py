"""connect.test.v1.TestService by grpcio.

Announces the ports `plain` (h2c), `tls` and `mutual` (TLS that requires a client certificate), `unix` (path of a
socket), `abstract` (name of a socket in the abstract namespace), `authority` (PEM to trust), `client_chain` and
`client_key` (PEM of a client certificate that `mutual` accepts). Responses are compressed with gzip if the request has
the header `x-compress`.
"""

import asyncio
import os
import sys

import grpc
import grpc.aio
import trustme
from google.rpc import status_pb2
from grpc_status import rpc_status

import launcher

sys.path.insert(0, os.environ["CONNECT_TEST_GENERATED"])

from connect.test.v1 import test_pb2 as pb  # noqa: E402
from connect.test.v1 import test_pb2_grpc  # noqa: E402

CODES = {code.value[0]: code for code in grpc.StatusCode}


def text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def seen(context: grpc.aio.ServicerContext, path: str, count: int) -> pb.Seen:
    """What the server saw of a call. grpcio keeps the protocol's own headers to itself."""
    result = pb.Seen(
        http_version="2", http_method="POST", path=path, message_count=count, codec="proto"
    )
    values: dict[str, list[str]] = {}
    for name, value in context.invocation_metadata():
        values.setdefault(name, []).append(text(value))
    for name, items in values.items():
        result.headers.add(name=name, values=items)
    remaining = context.time_remaining()
    if remaining is not None and remaining < 1e9:
        result.timeout_ms = max(0, round(remaining * 1000))
    return result


def metadata(headers) -> list[tuple[str, str | bytes]]:
    """Values of `-bin` are given as the bytes of their characters."""
    return [
        (header.name, value.encode("latin-1") if header.name.endswith("-bin") else value)
        for header in headers
        for value in header.values
    ]


def trailers(context, instruction: pb.Instruction) -> None:
    context.set_trailing_metadata(tuple(metadata(instruction.trailers)))


async def begin(context, instruction: pb.Instruction) -> None:
    """Does what is to be done before the first message of the response."""
    trailers(context, instruction)
    if instruction.delay_ms:
        await asyncio.sleep(instruction.delay_ms / 1000)
    is_compressed = any(name == "x-compress" for name, _ in context.invocation_metadata())
    if is_compressed:
        context.set_compression(grpc.Compression.Gzip)
    # A response without headers of its own may be trailers alone. The encoding is sent with headers only.
    if instruction.headers or is_compressed:
        await context.send_initial_metadata(metadata(instruction.headers))


async def fail_if_instructed(context, instruction: pb.Instruction, sent: int | None = None) -> None:
    """Ends with the failure that is asked for; `sent` is None when no message will follow."""
    if not instruction.HasField("failure"):
        return
    failure = instruction.failure
    if sent is not None and sent < failure.after_messages:
        return
    if failure.details:
        status = status_pb2.Status(code=failure.code, message=failure.message)
        status.details.extend(failure.details)
        rich = rpc_status.to_status(status)
        await context.abort(
            rich.code, rich.details, tuple(metadata(instruction.trailers)) + rich.trailing_metadata
        )
    code = CODES.get(failure.code, grpc.StatusCode.UNKNOWN)
    await context.abort(code, failure.message, tuple(metadata(instruction.trailers)))


class Service(test_pb2_grpc.TestServiceServicer):
    prefix = "/connect.test.v1.TestService/"

    async def Echo(self, request, context):
        await begin(context, request.instruction)
        await fail_if_instructed(context, request.instruction)
        return pb.EchoResponse(
            payload=request.payload if request.HasField("payload") else None,
            seen=seen(context, self.prefix + "Echo", 1),
            padding=bytes(request.instruction.response_bytes),
        )

    async def Count(self, request, context):
        instruction = request.instruction
        await begin(context, instruction)
        for index in range(instruction.message_count):
            await fail_if_instructed(context, instruction, index)
            if index and instruction.message_delay_ms:
                await asyncio.sleep(instruction.message_delay_ms / 1000)
            yield pb.CountResponse(
                number=getattr(request, "from") + index,
                seen=seen(context, self.prefix + "Count", 1) if index == 0 else None,
                padding=bytes(instruction.response_bytes),
            )
        await fail_if_instructed(context, instruction)

    async def Sum(self, request_iterator, context):
        instruction = pb.Instruction()
        received = total = 0
        async for message in request_iterator:
            received += 1
            if received == 1:
                instruction = message.instruction
            total += message.number
            if instruction.finish_after and received >= instruction.finish_after:
                break
        await begin(context, instruction)
        await fail_if_instructed(context, instruction)
        return pb.SumResponse(
            sum=total,
            seen=seen(context, self.prefix + "Sum", received),
            padding=bytes(instruction.response_bytes),
        )

    async def Converse(self, request_iterator, context):
        instruction = pb.Instruction()
        received = answered = 0
        held = []

        async def answers(message):
            nonlocal answered
            for _ in range(max(1, instruction.message_count)):
                await fail_if_instructed(context, instruction, answered)
                if answered and instruction.message_delay_ms:
                    await asyncio.sleep(instruction.message_delay_ms / 1000)
                yield pb.ConverseResponse(
                    index=answered,
                    payload=message.payload if message.HasField("payload") else None,
                    seen=seen(context, self.prefix + "Converse", received),
                    padding=bytes(instruction.response_bytes),
                )
                answered += 1

        async for message in request_iterator:
            received += 1
            if received == 1:
                instruction = message.instruction
                if not instruction.half_duplex:
                    await begin(context, instruction)
            if instruction.half_duplex:
                held.append(message)
            else:
                async for answer in answers(message):
                    yield answer
            if instruction.finish_after and received >= instruction.finish_after:
                break
        if instruction.half_duplex:
            await begin(context, instruction)
        for message in held:
            async for answer in answers(message):
                yield answer
        await fail_if_instructed(context, instruction)

    async def Lookup(self, request, context):
        await begin(context, request.instruction)
        await fail_if_instructed(context, request.instruction)
        return pb.LookupResponse(
            value=f"value of {request.key}",
            seen=seen(context, self.prefix + "Lookup", 1),
            padding=bytes(request.instruction.response_bytes),
        )

    async def Flood(self, request, context):
        size = request.message_bytes or 65536
        data = b"Z" * min(size, request.total_bytes)
        offset = 0
        while offset < request.total_bytes:
            count = min(size, request.total_bytes - offset)
            yield pb.FloodResponse(offset=offset, data=data[:count])
            offset += count

    async def Unimplemented(self, request, context):
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "never implemented")


async def start(folder: str) -> tuple[grpc.aio.Server, dict[str, object]]:
    """A server on all addresses, and what to announce."""
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    identity = authority.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.ECDSA)
    client = authority.issue_cert("client.example", key_type=trustme.KeyType.ECDSA)
    pair = (
        identity.private_key_pem.bytes(),
        b"".join(blob.bytes() for blob in identity.cert_chain_pems),
    )
    root = authority.cert_pem.bytes()
    tls = grpc.ssl_server_credentials([pair])
    mutual = grpc.ssl_server_credentials([pair], root, require_client_auth=True)

    server = grpc.aio.server(
        options=[
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_metadata_size", 1 << 20),
        ]
    )
    test_pb2_grpc.add_TestServiceServicer_to_server(Service(), server)
    path = os.path.join(folder, "server.sock")
    name = f"connect-grpc-{os.path.basename(folder)}-{os.getpid()}"
    facts: dict[str, object] = {
        "plain": server.add_insecure_port("127.0.0.1:0"),
        "tls": server.add_secure_port("127.0.0.1:0", tls),
        "mutual": server.add_secure_port("127.0.0.1:0", mutual),
        "unix": path,
        "abstract": name,
        "authority": root.decode(),
        "client_chain": b"".join(blob.bytes() for blob in client.cert_chain_pems).decode(),
        "client_key": client.private_key_pem.bytes().decode(),
    }
    server.add_insecure_port(f"unix:{path}")
    server.add_insecure_port(f"unix-abstract:{name}")
    await server.start()
    return server, facts


async def main() -> None:
    folder = launcher.temporary_folder()
    launcher.exit_with_parent()
    server, facts = await start(folder)
    launcher.announce(**facts)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
