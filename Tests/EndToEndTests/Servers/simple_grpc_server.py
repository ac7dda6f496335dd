"""A small gRPC server by h2 for fleet_server.py, which ends as RFC 9113, section 6.8, wants it: GOAWAY names the last stream that
it answers, later ones are ignored, and the connection stays until the client closes it.

It answers each call with an empty message.
"""

import asyncio

import h2.config
import h2.connection
import h2.events
import hyperframe.frame


class Connection(asyncio.Protocol):
    def __init__(self, server: "Server"):
        self.server = server
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.last_stream = 0
        self.is_draining = False

    def connection_made(self, transport):
        self.transport = transport
        self.server.connections.add(self)
        self.h2.initiate_connection()
        self.flush()

    def connection_lost(self, error):
        self.server.connections.discard(self)

    def data_received(self, data):
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.RequestReceived) and not self.is_draining:
                self.last_stream = event.stream_id
            elif isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded) and event.stream_id <= self.last_stream:
                self.answer(event.stream_id)
        self.flush()

    def answer(self, stream: int) -> None:
        self.server.started += 1
        self.server.ended += 1
        self.h2.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        self.h2.send_data(stream, bytes(5))
        trailers = [("grpc-status", "0"), ("x-server", self.server.address)]
        self.h2.send_headers(stream, trailers, end_stream=True)

    def drain(self) -> None:
        self.is_draining = True
        # h2 itself would send nothing more.
        frame = hyperframe.frame.GoAwayFrame(0, last_stream_id=self.last_stream, error_code=0)
        self.transport.write(frame.serialize())

    def flush(self) -> None:
        self.transport.write(self.h2.data_to_send())


class Server:
    def __init__(self):
        self.address = ""
        self.started = self.ended = 0
        self.connections: set[Connection] = set()

    async def start(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        loop = asyncio.get_running_loop()
        self.listener = await loop.create_server(lambda: Connection(self), host, int(port))
        self.address = f"{host}:{self.listener.sockets[0].getsockname()[1]}"

    async def stop(self, grace: float) -> None:
        self.listener.close()
        for connection in self.connections:
            connection.drain()
        end = asyncio.get_running_loop().time() + grace
        while self.connections and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.002)
        for connection in list(self.connections):
            connection.transport.abort()

    def stats(self) -> dict:
        return {"started": self.started, "ended": self.ended, "held": [], "peers": len(self.connections)}
