internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
internal import TestSupport
internal import XCTest

/// Types that the files of the called service lack.
final class CommandLineTypeTests: XCTestCase {
  private static let service = "connect.test.v1.TestService"
  private static let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"

  /// The server's reflection knows `google.rpc.Status`, which the service's files do not import.
  func testTypesOfAnyAreLookedUp() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)"
    let any = #"{"@type":"type.googleapis.com/google.rpc.Status","code":5,"message":"inner"}"#
    let data = #"{"payload": {"any": \#(any)}}"#
    let unary = try await self.connectrpc("call", "\(url)/Echo", "-d", data)
    XCTAssertEqual(unary.status, 0, unary.error)
    XCTAssertTrue(unary.text.contains(#""any":\#(any)"#), unary.text)
    let stream = try await self.connectrpc("call", "\(url)/Converse", "-d", "\(data) {} \(data)")
    XCTAssertEqual(stream.status, 0, stream.error)
    XCTAssertEqual(stream.lines.filter { $0.contains(#""any":\#(any)"#) }.count, 2, stream.text)
    // Inside of another one.
    let nested = #"{"@type":"type.googleapis.com/google.rpc.Status","details":[\#(any)]}"#
    let deep = try await self.connectrpc("call", "\(url)/Echo", "-d", #"{"payload": {"any": \#(nested)}}"#)
    XCTAssertTrue(deep.text.contains(nested), deep.text + deep.error)
    let load = try await self.connectrpc("load", "\(url)/Echo", "--count", "2", "-d", data)
    XCTAssertEqual(load.status, 0, load.error)
    let unknown = try await self.connectrpc(
      "call",
      "\(url)/Echo",
      "-d",
      #"{"payload": {"any": {"@type": "type.googleapis.com/acme.Unknown"}}}"#
    )
    XCTAssertEqual(unknown.status, 64, unknown.error)
    XCTAssertTrue(unknown.error.contains("acme.Unknown"), unknown.error)
  }

  func testTypesOfDetailsAreLookedUp() async throws {
    let url = "\(try await self.reflecting())/\(Self.service)"
    let details = #"""
      [{"@type": "type.googleapis.com/connect.test.v1.ErrorInfo", "reason": "r"},
       {"@type": "type.googleapis.com/google.rpc.Status", "code": 3, "message": "inner"}]
      """#
    let data = #"{"instruction": {"failure": {"code": 5, "message": "none", "details": \#(details)}}}"#
    for method in ["Echo", "Count"] {
      let output = try await self.connectrpc("call", "\(url)/\(method)", "-d", data)
      XCTAssertEqual(output.status, 64 + 5, output.error)
      for line in [
        #"detail: connect.test.v1.ErrorInfo: {"reason":"r"}"#,
        #"detail: google.rpc.Status: {"code":3,"message":"inner"}"#,
      ] {
        XCTAssertTrue(output.error.split(separator: "\n").contains { $0 == line }, output.error)
      }
    }
  }

  /// A call that has succeeded is shown whatever is in it; and what a server says cannot steer a terminal.
  func testTypesThatStayUnknown() async throws {
    let server = try await LoopbackServer.start()
    let response = EchoResponse.with {
      $0.payload.any = .with {
        $0.typeURL = "type.googleapis.com/acme.Unknown"
        $0.value = Data([8, 1])
      }
    }
    let bytes = ByteBuffer(bytes: try response.serializedBytes() as [UInt8])
    server.onRaw("/\(Self.service)/Echo") { request, responder in
      _ = try await request.body()
      try await responder.respond(headers: ["content-type": "application/proto"], body: bytes)
    }
    let details = #"[{"type": "acme.\u001b[2JUnknown", "value": "CAE"}]"#
    server.onRaw("/\(Self.service)/Lookup") { request, responder in
      _ = try await request.body()
      try await responder.respond(
        status: 404,
        headers: ["content-type": "application/json"],
        text: #"{"code": "not_found", "message": "a\u001b[31mb", "details": \#(details)}"#
      )
    }
    let options = ["--schema", try await self.descriptorSet(), "--protocol", "connect"]
    let echo = try await self.connectrpc(["call", "\(server.url)/\(Self.service)/Echo"] + options)
    XCTAssertEqual(echo.status, 0, echo.error)
    let any = #"{"@type":"type.googleapis.com/acme.Unknown","value":"CAE="}"#
    XCTAssertEqual(echo.lines, [#"{"payload":{"any":\#(any)}}"#])
    let failure = try await self.connectrpc(["call", "\(server.url)/\(Self.service)/Lookup"] + options)
    XCTAssertEqual(failure.status, 64 + 5, failure.error)
    XCTAssertTrue(failure.error.contains(#"Unknown: {"value":"CAE="}"#), failure.error)
    XCTAssertFalse(failure.error.contains("\u{1b}"), failure.error)
    let load = try await self.connectrpc(
      ["load", "\(server.url)/\(Self.service)/Lookup", "--count", "2"] + options
    )
    XCTAssertEqual(load.status, 1, load.error)
    XCTAssertTrue(load.text.contains("[31mb"), load.text)
    XCTAssertFalse(load.text.contains("\u{1b}"), load.text)
    await server.stop()
  }

  /// In JSON, a response with an unknown type can be decoded only when the type was looked up.
  func testTypesOfJSONAreLookedUp() async throws {
    let path = try await self.descriptorSet()
    let set = try Google_Protobuf_FileDescriptorSet(
      serializedBytes: Data(contentsOf: URL(filePath: path))
    )
    let extra = Google_Protobuf_FileDescriptorProto.with {
      $0.name = "acme.proto"
      $0.package = "acme"
      $0.syntax = "proto3"
      $0.messageType = [
        .with {
          $0.name = "Extra"
          $0.field = [
            .with {
              $0.name = "text"
              $0.number = 1
              $0.type = .string
              $0.label = .optional
            }
          ]
        }
      ]
    }
    let server = try await LoopbackServer.start()
    server.onRaw(Self.reflection) { request, responder in
      let isExtra = String(buffer: try await request.body()).contains("acme.Extra")
      try await Self.answer(isExtra ? [extra] : set.file, responder)
    }
    let any = #"{"@type":"type.googleapis.com/acme.Extra","text":"x"}"#
    server.onRaw("/\(Self.service)/Echo") { request, responder in
      _ = try await request.body()
      try await responder.respond(
        headers: ["content-type": "application/json"],
        text: #"{"payload": {"any": \#(any)}}"#
      )
    }
    let arguments = [
      "call", "\(server.url)/\(Self.service)/Echo", "--codec", "json", "--protocol", "connect",
    ]
    let output = try await self.connectrpc(arguments)
    XCTAssertEqual(output.status, 0, output.error)
    XCTAssertEqual(output.lines, [#"{"payload":{"any":\#(any)}}"#])
    let without = try await self.connectrpc(arguments + ["--schema", path])
    XCTAssertEqual(without.status, 64 + 13, without.error)
    XCTAssertTrue(without.error.contains("acme.Extra"), without.error)
    await server.stop()
  }

  /// Answers one question of the reflection, in the Connect protocol.
  private static func answer(
    _ files: [Google_Protobuf_FileDescriptorProto],
    _ responder: RawResponder
  ) async throws {
    func field(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
      var (bytes, count) = ([tag], content.count)
      while count >= 128 {
        bytes.append(UInt8(count & 127) | 128)
        count >>= 7
      }
      return bytes + [UInt8(count)] + content
    }
    let protos = try files.flatMap { field(0x0a, try $0.serializedBytes() as [UInt8]) }
    var body = ByteBuffer(envelope: ByteBuffer(bytes: field(0x22, protos)), flags: 0)
    body.writeImmutableBuffer(ByteBuffer(envelope: ByteBuffer(string: "{}"), flags: 2))
    try await responder.respond(headers: ["content-type": "application/connect+proto"], body: body)
  }

  /// The server's fault, not the user's.
  func testReflectionWithBadFiles() async throws {
    let file = Google_Protobuf_FileDescriptorProto.with {
      $0.name = "acme.proto"
      $0.package = "acme"
      $0.service = [
        .with {
          $0.name = "Users"
          $0.method = [
            .with {
              $0.name = "Get"
              $0.inputType = ".acme.Nothing"
              $0.outputType = ".acme.Nothing"
            }
          ]
        }
      ]
    }
    let server = try await LoopbackServer.start()
    server.onRaw(Self.reflection) { request, responder in
      _ = try await request.body()
      try await Self.answer([file], responder)
    }
    for arguments in [
      ["call", "\(server.url)/acme.Users/Get"], ["load", "\(server.url)/acme.Users/Get"],
      ["list", server.url, "acme.Users"],
    ] {
      let output = try await self.connectrpc(arguments + ["--protocol", "connect"])
      XCTAssertEqual(output.status, 64 + 13, output.error)
      XCTAssertTrue(output.error.contains("acme.Nothing"), output.error)
      XCTAssertEqual(output.error.split(separator: "\n").count, 1, output.error)
    }
    await server.stop()
  }
}
