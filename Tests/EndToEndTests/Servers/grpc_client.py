"""Calls connect.test.v1.TestService by grpcio, each kind of method once, and prints what comes back, each in a line.

Argument: the server's address, as HOST:PORT.
"""

import os
import sys

import grpc
from google.protobuf import json_format

sys.path.insert(0, os.environ["CONNECT_TEST_GENERATED"])

from connect.test.v1 import test_pb2 as pb  # noqa: E402
from connect.test.v1 import test_pb2_grpc  # noqa: E402


def show(message) -> None:
    print(json_format.MessageToJson(message, indent=None))


def failing(call) -> None:
    try:
        call()
    except grpc.RpcError as error:
        trailers = sorted(item.key for item in error.trailing_metadata())
        print(error.code().name, error.details(), *trailers)


def main() -> None:
    with grpc.insecure_channel(sys.argv[1]) as channel:
        stub = test_pb2_grpc.TestServiceStub(channel)
        show(stub.Echo(pb.EchoRequest(payload=pb.Payload(text="ä"))))
        count = pb.CountRequest(instruction=pb.Instruction(message_count=3))
        for message in stub.Count(count):
            show(message)
        show(stub.Sum(iter([pb.SumRequest(number=3), pb.SumRequest(number=4)])))
        for message in stub.Converse(iter([pb.ConverseRequest(), pb.ConverseRequest()])):
            show(message)
        trailer = pb.Header(name="x-trailer", values=["1"])
        failure = pb.Failure(code=pb.CODE_NOT_FOUND, message="none")
        instruction = pb.Instruction(failure=failure, trailers=[trailer])
        failing(lambda: stub.Echo(pb.EchoRequest(instruction=instruction)))
        failure.after_messages = 2
        instruction = pb.Instruction(failure=failure, trailers=[trailer], message_count=3)
        failing(lambda: list(stub.Count(pb.CountRequest(instruction=instruction))))


if __name__ == "__main__":
    main()
