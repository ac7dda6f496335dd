"""Checks that the proto files which ConnectXDS has of Envoy and xDS agree with the full ones, those of the package xds-protos.

Files, packages, messages, fields (numbers, types, labels, oneofs), enumerations and services of ours have to be there,
and be the same. What the full files have beside them does not matter. Prints each difference, and fails if there is one.
"""

import importlib
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROTOS = ROOT / "Protos"
FOLDERS = ["envoy", "google/rpc", "udpa", "xds"]

Field = descriptor_pb2.FieldDescriptorProto
problems: list[str] = []


def ours() -> list[descriptor_pb2.FileDescriptorProto]:
    paths = sorted(str(path.relative_to(PROTOS)) for folder in FOLDERS for path in (PROTOS / folder).rglob("*.proto"))
    with tempfile.NamedTemporaryFile() as output:
        subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", f"--descriptor_set_out={output.name}", *paths],
            check=True,
        )
        return list(descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(output.name).read_bytes()).file)


def theirs(path: str) -> descriptor_pb2.FileDescriptorProto:
    module = importlib.import_module(path.removesuffix(".proto").replace("/", ".") + "_pb2")
    return descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)


def compare_fields(scope: str, ours, theirs) -> None:
    table = {field.name: field for field in theirs.field}
    for field in ours.field:
        name = f"{scope}.{field.name}"
        other = table.get(field.name)
        if other is None:
            problems.append(f"{name} is not there")
            continue
        for what in ("number", "label", "type", "type_name", "proto3_optional"):
            a, b = getattr(field, what), getattr(other, what)
            if a != b:
                problems.append(f"{name}: {what} is {a!r}, not {b!r}")
        # A repeated number is packed in proto3 unless it says something else.
        if field.options.packed != other.options.packed:
            problems.append(f"{name}: packed is different")
        groups = [
            message.oneof_decl[one.oneof_index].name if one.HasField("oneof_index") else ""
            for message, one in ((ours, field), (theirs, other))
        ]
        if groups[0] != groups[1]:
            problems.append(f"{name}: its oneof is {groups[0]!r}, not {groups[1]!r}")


def compare_enums(scope: str, ours, theirs) -> None:
    table = {enum.name: enum for enum in theirs}
    for enum in ours:
        if enum.name not in table:
            problems.append(f"{scope}.{enum.name} is not there")
            continue
        values = {value.name: value.number for value in table[enum.name].value}
        for value in enum.value:
            if values.get(value.name) != value.number:
                problems.append(
                    f"{scope}.{enum.name}.{value.name} is {value.number}, not {values.get(value.name)}"
                )


def compare_messages(scope: str, ours, theirs) -> int:
    table = {message.name: message for message in theirs}
    count = 0
    for message in ours:
        name = f"{scope}.{message.name}"
        if message.name not in table:
            problems.append(f"{name} is not there")
            continue
        other = table[message.name]
        compare_fields(name, message, other)
        compare_enums(name, message.enum_type, other.enum_type)
        if message.options.map_entry != other.options.map_entry:
            problems.append(f"{name}: only one of the two is a map")
        count += len(message.field) + compare_messages(name, message.nested_type, other.nested_type)
    return count


def compare_services(scope: str, ours, theirs) -> None:
    table = {
        (service.name, method.name): method for service in theirs for method in service.method
    }
    for service in ours:
        for method in service.method:
            other = table.get((service.name, method.name))
            if other is None:
                problems.append(f"{scope}.{service.name}.{method.name} is not there")
                continue
            for what in ("input_type", "output_type", "client_streaming", "server_streaming"):
                if getattr(method, what) != getattr(other, what):
                    problems.append(f"{scope}.{service.name}.{method.name}: {what} is different")


def main() -> int:
    count = 0
    files = ours()
    for file in files:
        other = theirs(file.name)
        if file.package != other.package:
            problems.append(f"{file.name}: its package is {file.package}, not {other.package}")
        if file.syntax != other.syntax:
            problems.append(f"{file.name}: its syntax is {file.syntax}, not {other.syntax}")
        count += compare_messages(file.package, file.message_type, other.message_type)
        compare_enums(file.package, file.enum_type, other.enum_type)
        compare_services(file.package, file.service, other.service)
    for problem in problems:
        print(problem)
    print(f"{len(files)} files, {count} fields, {len(problems)} differences")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
