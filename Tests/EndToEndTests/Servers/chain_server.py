"""A grpcio server that answers every unary call by a call of the next server, or is the last one of a chain.

Arguments: the address of the next server, and the service config (JSON) for calls to it; without them it is the last one.
Announces the `port` on 127.0.0.1. Commands have `do`:

- `behave` with `share`, from 0 to 1: this share of calls fails with UNAVAILABLE, evenly spread. The last server alone heeds it.
- `stats`: `started` calls.

A failed call of the next server fails the call with the same code.
"""

import concurrent.futures
import sys
import threading

import grpc
import launcher


class ChainServer(grpc.GenericRpcHandler):
    def __init__(self, channel: grpc.Channel | None):
        self.channel = channel
        self.share = 0.0
        self.due = 0.0
        self.started = 0
        self.lock = threading.Lock()

    def service(self, details):
        def handle(request: bytes, context) -> bytes:
            with self.lock:
                self.started += 1
                self.due += self.share
                fails = self.due >= 1
                if fails:
                    self.due -= 1
            if self.channel:
                try:
                    return self.channel.unary_unary(details.method)(request, timeout=30)
                except grpc.RpcError as error:
                    context.abort(error.code(), error.details() or "")
            if fails:
                context.abort(grpc.StatusCode.UNAVAILABLE, "as the test wants")
            return b""

        return grpc.unary_unary_rpc_method_handler(handle)

    def command(self, command: dict) -> dict:
        match command["do"]:
            case "behave":
                self.share, self.due = command["share"], 0.0
                return {}
            case "stats":
                return {"started": self.started}
            case other:
                return {"error": f"no command {other}"}


def main() -> None:
    channel = None
    if len(sys.argv) > 2:
        channel = grpc.insecure_channel(sys.argv[1], options=[("grpc.service_config", sys.argv[2])])
    chain = ChainServer(channel)
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(max_workers=32),
        handlers=[chain],
        options=[("grpc.so_reuseport", 0)],
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    launcher.take_commands(lambda command, reply: reply(**chain.command(command)))
    launcher.announce(port=port)
    server.wait_for_termination()


main()
