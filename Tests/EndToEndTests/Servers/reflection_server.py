"""connect.test.v1.TestService by grpcio, with server reflection.

Announces the ports `v1alpha` (grpcio-reflection as it is), `v1` (the same under the name of the later version), `both`, `off`
(none), and `lacking` (v1, but without the files that are imported).
"""

import asyncio

import grpc
import grpc.aio
from grpc_reflection.v1alpha import reflection
from grpc_reflection.v1alpha import reflection_pb2 as pb

import grpc_server
import launcher

SERVICES = ("connect.test.v1.TestService", reflection.SERVICE_NAME)


class LackingServicer(reflection.aio.ReflectionServicer):
    """Sends a file alone, and knows no file by its name."""

    def _file_containing_symbol(self, request, symbol):
        answer = super()._file_containing_symbol(request, symbol)
        if answer.HasField("file_descriptor_response"):
            del answer.file_descriptor_response.file_descriptor_proto[1:]
        return answer

    def _file_by_filename(self, request, name):
        return super()._file_by_filename(request, f"lost/{name}")


def add_v1(servicer, server: grpc.aio.Server) -> None:
    """Both versions have the same messages."""
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=pb.ServerReflectionRequest.FromString,
        response_serializer=pb.ServerReflectionResponse.SerializeToString,
    )
    name = "grpc.reflection.v1.ServerReflection"
    methods = {"ServerReflectionInfo": handler}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, methods),))


async def start(add) -> int:
    server = grpc.aio.server()
    grpc_server.test_pb2_grpc.add_TestServiceServicer_to_server(grpc_server.Service(), server)
    add(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    servers.append(server)
    return port


servers: list[grpc.aio.Server] = []


async def main() -> None:
    launcher.exit_with_parent()

    def both(server: grpc.aio.Server) -> None:
        reflection.enable_server_reflection(SERVICES, server)
        add_v1(reflection.aio.ReflectionServicer(SERVICES), server)

    launcher.announce(
        v1alpha=await start(lambda server: reflection.enable_server_reflection(SERVICES, server)),
        v1=await start(lambda server: add_v1(reflection.aio.ReflectionServicer(SERVICES), server)),
        both=await start(both),
        off=await start(lambda server: None),
        lacking=await start(lambda server: add_v1(LackingServicer(SERVICES), server)),
    )
    await asyncio.gather(*(server.wait_for_termination() for server in servers))


if __name__ == "__main__":
    asyncio.run(main())
