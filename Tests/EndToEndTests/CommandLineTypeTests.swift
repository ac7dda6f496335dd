internal import Connect
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
internal import TestSupport
internal import XCTest

/// Types that the files of the called service lack.
final class CommandLineTypeTests: XCTestCase {
  private static let service = "connect.test.v1.TestService"

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
      XCTAssertTrue(output.error.hasPrefix("error: not_found (5): none\ndetail: "), output.error)
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
    ReflectionAnswer.serve(server) { .files($0.contains("acme.Extra") ? [extra] : set.file) }
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
    ReflectionAnswer.serve(server) { _ in .files([file]) }
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

  // MARK: Imports that the server lacks

  /// `acme.Users/Get`, whose messages have a field of `type` if it is given.
  private static func users(imports: [String], uses type: String? = nil)
    -> Google_Protobuf_FileDescriptorProto
  {
    .with {
      $0.name = "acme/users.proto"
      $0.package = "acme"
      $0.syntax = "proto3"
      $0.dependency = imports
      $0.messageType = [
        .with {
          $0.name = "User"
          if let type {
            $0.field = [
              .with {
                $0.name = "held"
                $0.number = 1
                $0.label = .optional
                $0.type = .message
                $0.typeName = type
              }
            ]
          }
        }
      ]
      $0.service = [
        .with {
          $0.name = "Users"
          $0.method = [
            .with {
              $0.name = "Get"
              $0.inputType = ".acme.User"
              $0.outputType = ".acme.User"
            }
          ]
        }
      ]
    }
  }

  private func commands(_ url: String) -> [[String]] {
    [
      ["call", "\(url)/acme.Users/Get"], ["load", "\(url)/acme.Users/Get", "-n", "1"],
      ["list", url, "acme.Users"], ["describe", url, "acme.Users"],
    ].map { $0 + ["--protocol", "connect"] }
  }

  /// One line names the file, and the file that imports it; the exit code is that of `internal`.
  func testAnImportThatTheServerLacks() async throws {
    let file = Self.users(imports: ["acme/kinds.proto"], uses: ".acme.kinds.Kind")
    for answer in [
      ReflectionAnswer.error(.notFound, "no such file"), .error(.unknown, "no such file"),
      .end(.unknown, "no such file"), .end(.notFound, "no such file"),
    ] {
      let server = try await LoopbackServer.start()
      ReflectionAnswer.serve(server) { $0.contains("kinds.proto") ? answer : .files([file]) }
      for arguments in self.commands(server.url) {
        let output = try await self.connectrpc(arguments)
        XCTAssertEqual(output.status, 64 + 13, "\(arguments): \(output.error)")
        XCTAssertEqual(output.text, "", "\(arguments)")
        for part in ["acme/kinds.proto, which acme/users.proto imports", "acme.kinds.Kind", "no such file"] {
          XCTAssertTrue(output.error.contains(part), "\(arguments): \(output.error)")
        }
        XCTAssertTrue(output.error.contains("give --schema or --proto"), output.error)
        XCTAssertEqual(output.error.split(separator: "\n").count, 1, output.error)
      }
      await server.stop()
    }
  }

  /// Only options need the file, or clients have it.
  func testImportsThatAreNotMissed() async throws {
    for file in [
      Self.users(imports: ["acme/options.proto"]),
      Self.users(
        imports: ["google/protobuf/timestamp.proto", "acme/options.proto"],
        uses: ".google.protobuf.Timestamp"
      ),
    ] {
      let server = try await LoopbackServer.start()
      ReflectionAnswer.serve(server) { question in
        question.hasSuffix(".proto") ? .error(.notFound, "no such file") : .files([file])
      }
      server.onRaw("/acme.Users/Get") { request, responder in
        _ = try await request.body()
        try await responder.respond(headers: ["content-type": "application/proto"], text: "")
      }
      for arguments in self.commands(server.url) {
        let output = try await self.connectrpc(arguments)
        XCTAssertEqual(output.status, 0, "\(arguments): \(output.error)")
      }
      await server.stop()
    }
  }

  /// The server lists a service, and does not know it.
  func testAServiceWithoutAFile() async throws {
    let server = try await LoopbackServer.start()
    ReflectionAnswer.serve(server) { question in
      question.contains("ghost.v1") ? .error(.notFound, "none") : .services(["ghost.v1.Ghost"])
    }
    for arguments in [
      ["list", server.url, "ghost.v1.Ghost"], ["describe", server.url, "ghost.v1.Ghost"],
      ["call", "\(server.url)/ghost.v1.Ghost/Get"],
    ] {
      let output = try await self.connectrpc(arguments + ["--protocol", "connect"])
      XCTAssertEqual(output.status, 64 + 5, "\(arguments): \(output.error)")
      XCTAssertFalse(output.error.contains("did you mean"), output.error)
      XCTAssertTrue(
        output.error.contains("the server lists ghost.v1.Ghost, and its reflection"),
        output.error
      )
      XCTAssertTrue(output.error.contains("give --schema or --proto"), output.error)
    }
    await server.stop()
  }
}
