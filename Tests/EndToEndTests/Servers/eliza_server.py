"""connectrpc.eliza.v1.ElizaService, the service of the examples, by connectrpc on hypercorn: HTTP/1.1 and h2c.

Announces `http` (a port). Answers `You said: SENTENCE`; a call without the header `x-tenant` that says `Tenant?` fails.
"""

import asyncio
import os
import sys

import connectrpc
from hypercorn.asyncio import serve
from hypercorn.config import Config

import launcher

sys.path.insert(0, os.environ["CONNECT_TEST_GENERATED"])
# The generated code's package has the same name as that of the servers.
connectrpc.__path__.append(os.path.join(os.environ["CONNECT_TEST_GENERATED"], "connectrpc"))

from connectrpc.code import Code  # noqa: E402
from connectrpc.eliza.v1 import eliza_pb2 as pb  # noqa: E402
from connectrpc.eliza.v1.eliza_connect import ElizaServiceASGIApplication  # noqa: E402
from connectrpc.errors import ConnectError  # noqa: E402


class Service:
    async def say(self, request, ctx):
        tenant = ctx.request_headers.get("x-tenant")
        if request.sentence == "Tenant?" and tenant is None:
            raise ConnectError(Code.UNAUTHENTICATED, "no tenant")
        speaker = f"{tenant} said" if tenant else "You said"
        return pb.SayResponse(sentence=f"{speaker}: {request.sentence}")

    async def converse(self, request, ctx):
        async for message in request:
            yield pb.ConverseResponse(sentence=f"You said: {message.sentence}")

    async def introduce(self, request, ctx):
        for sentence in [f"Hi {request.name}.", "I'm Eliza."]:
            yield pb.IntroduceResponse(sentence=sentence)


def main() -> None:
    listener = launcher.listen()
    config = Config()
    config.insecure_bind = config.bind = [f"fd://{listener.fileno()}"]
    config.loglevel = "WARNING"
    service = ElizaServiceASGIApplication(Service())

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            launcher.announce(http=launcher.port_of(listener))
            return
        await service(scope, receive, send)

    launcher.exit_with_parent()
    asyncio.run(serve(app, config))


if __name__ == "__main__":
    main()
