"""Any number of servers of connect.test.v1.TestService by grpcio, each on an address of its own, run by commands.

Announces the process id `pid`. Commands have `do` and, but for the first form of `start`, the `address` of a server:

- `start` with `address` (port 0 for a free one), `streams` (the most at the same time; 0 for any), `health` (whether there is
  the health service), `age` (the milliseconds after which it renews a connection; 0 for none), `simple` (whether it is a small server by h2 in place of grpcio, see simple_grpc_server.py): answered
  with `address`. An address that was stopped may start again, and goes on counting.
- `stop` with `grace` in seconds: GOAWAY, then the end once no call is left, or the time is over.
- `behave` with some of `code` (calls fail with it; 0 for none), `delay` in seconds, `spread` (then the delay is only the median of a
  log-normal distribution with this sigma), `load` (a base64 text: an ORCA report).
- `release` with `count`: so many calls that are held may go on; 0 for all, and all that come.
- `health` with `service` and `status` (a name; empty to forget the service).
- `stats`: `started`, `ended`, `held` (the numbers of the calls, in order), `peers` (how many addresses the calls came from).

Each server answers Echo alone, and says its address in the trailer `x-server`. A call whose payload's text is "hold" is held
until it is released; payload's `small` is its number.
"""

import asyncio
import base64
import os
import random
import sys

import grpc
import grpc.aio
import launcher
import simple_grpc_server

sys.path.insert(0, os.environ["CONNECT_TEST_GENERATED"])

from connect.test.v1 import test_pb2 as pb  # noqa: E402
from connect.test.v1 import test_pb2_grpc  # noqa: E402
from grpc_health.v1 import health, health_pb2, health_pb2_grpc  # noqa: E402

CODES = {code.value[0]: code for code in grpc.StatusCode}


class FleetServer(test_pb2_grpc.TestServiceServicer):
    def __init__(self, streams: int, has_health: bool, age: int):
        self.address = ""
        self.age = age
        self.streams = streams
        self.health = health.aio.HealthServicer() if has_health else None
        self.server: grpc.aio.Server | None = None
        self.code = 0
        self.delay = 0.0
        self.spread = 0.0
        self.load = b""
        self.holds = True
        self.started = self.ended = 0
        self.held: list[asyncio.Future] = []
        self.order: list[int] = []
        self.peers: set[str] = set()

    async def Echo(self, request, context):
        self.started += 1
        self.peers.add(context.peer())
        try:
            context.set_trailing_metadata(self.trailers())
            if request.payload.text == "hold" and self.holds:
                future = asyncio.get_running_loop().create_future()
                self.held.append(future)
                self.order.append(request.payload.small)
                await future
            if self.delay:
                await asyncio.sleep(self.delay * random.lognormvariate(0, self.spread))
            if self.code:
                await context.abort(CODES[self.code], "as the test wants", self.trailers())
            return pb.EchoResponse()
        finally:
            self.ended += 1

    def trailers(self):
        pairs = [("x-server", self.address)]
        if self.load:
            pairs.append(("endpoint-load-metrics-bin", self.load))
        return tuple(pairs)

    async def start(self, address: str) -> None:
        options = [("grpc.so_reuseport", 0)]
        if self.streams:
            options.append(("grpc.max_concurrent_streams", self.streams))
        if self.age:
            options.append(("grpc.max_connection_age_ms", self.age))
        self.server = grpc.aio.server(options=options)
        test_pb2_grpc.add_TestServiceServicer_to_server(self, self.server)
        if self.health:
            health_pb2_grpc.add_HealthServicer_to_server(self.health, self.server)
        port = self.server.add_insecure_port(address)
        self.address = f"{address.rsplit(':', 1)[0]}:{port}"
        await self.server.start()

    async def stop(self, grace: float) -> None:
        await self.server.stop(grace)

    def release(self, count: int) -> None:
        self.holds = self.holds and count > 0
        waiting = [future for future in self.held if not future.done()]
        for future in waiting[: count or len(waiting)]:
            future.set_result(None)

    def stats(self) -> dict:
        return {
            "started": self.started,
            "ended": self.ended,
            "held": self.order,
            "peers": len(self.peers),
        }


servers: dict[str, FleetServer] = {}


async def run(command: dict) -> dict:
    do, address = command["do"], command["address"]
    if do == "start":
        server = servers.get(address)
        if not server and command.get("simple"):
            server = simple_grpc_server.Server()
        elif not server:
            server = FleetServer(
                command.get("streams", 0), command.get("health", False), command.get("age", 0)
            )
        await server.start(address)
        servers[server.address] = server
        return {"address": server.address}
    server = servers[address]
    if do == "stop":
        await server.stop(command["grace"])
    elif do == "behave":
        server.code = command.get("code", server.code)
        server.delay = command.get("delay", server.delay)
        server.spread = command.get("spread", server.spread)
        if "load" in command:
            server.load = base64.b64decode(command["load"])
    elif do == "release":
        server.release(command["count"])
    elif do == "health":
        status = health_pb2.HealthCheckResponse.ServingStatus.Value(command["status"])
        await server.health.set(command["service"], status)
    elif do == "stats":
        return server.stats()
    else:
        raise ValueError(do)
    return {}


async def answer(command: dict, reply) -> None:
    try:
        reply(**await run(command))
    except Exception as error:
        reply(error=repr(error))


async def main() -> None:
    loop = asyncio.get_running_loop()
    launcher.take_commands(
        lambda command, reply: asyncio.run_coroutine_threadsafe(answer(command, reply), loop)
    )
    launcher.announce(pid=os.getpid())
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
