internal import Connect
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// Requests that must not be sent: the error names what is wrong, and the server hears nothing.
final class InvalidRequestTests: XCTestCase {
  // MARK: Hosts

  func testHosts() async throws {
    let hosts = [
      "", "localhost", "localhost:80", "ftp://localhost", "http//localhost", "http://", "http://:80",
      "http://localhost:0", "http://localhost:65536", "http://localhost:-1", "http://localhost:http",
      "http://local host", "http://[::1", "http://[::1]x", "http://user:password@localhost",
      "http://localhost?query", "http://localhost#fragment", "http://local\r\nhost", "unix:", "unix:relative",
      "unix:/" + String(repeating: "x", count: 108),
    ]
    for host in hosts {
      for version in Version.allCases {
        let what = "'\(host)', \(version.rawValue)"
        try await withPlainClient(version, host: host) { client in
          let error = try await client.expectFailure(
            TestMethods.echo,
            ExpectedError(.invalidArgument, "host '"),
            what
          )
          XCTAssertFalse(error?.message?.contains("password") == true, what)
          try await client.expectStreamFailure(TestMethods.count, ExpectedError(.invalidArgument), what)
          let sum = await client.clientStream(TestMethods.sum).closeAndReceive()
          XCTAssertEqual(sum.code, .invalidArgument, what)
          let converse = await client.bidirectionalStream(TestMethods.converse).results.collect()
          XCTAssertEqual(converse.code, .invalidArgument, what)
        }
      }
    }
  }

  // MARK: Messages

  private struct Unencodable: Codable {
    struct Refusal: Error {}

    init() {}
    init(from decoder: any Decoder) throws {}
    func encode(to encoder: any Encoder) throws { throw Refusal() }
  }

  func testMessagesThatDoNotEncode() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version, coding: .json) { embedded in
        let client = embedded.client
        let unary = MethodSpec<Unencodable, Unencodable>(codablePath: "/unary", streamType: .unary)
        let response = await client.unary(unary, Unencodable())
        ExpectedError(.internalError, "could not be encoded").check(response.error, version.rawValue)
        XCTAssertTrue(response.error?.exception is Unencodable.Refusal, "\(response)")
        XCTAssertEqual(embedded.server.requests.count, 0, version.rawValue)

        let count = MethodSpec<Unencodable, Unencodable>(codablePath: "/stream", streamType: .serverStream)
        let outcome = await client.serverStream(count, Unencodable()).results.collect()
        ExpectedError(.internalError, "could not be encoded").check(outcome.error, version.rawValue)
        XCTAssertEqual(outcome.ends.count, 1, version.rawValue)
      }
    }
  }

  // MARK: Headers

  /// A field, and what the message has to name.
  private struct Field {
    var name: String
    var value = "1"
    var named: String

    init(_ name: String, _ value: String = "1", named: String? = nil) {
      self.name = name
      self.value = value
      self.named = named ?? name
    }
  }

  private let fields = [
    Field("", named: "empty"), Field("x y"), Field("x:y"), Field("größe"),
    Field("x\r\nevil", named: "x??evil"),
    Field("x\0", named: "x?"),
    Field("x-value", "a\r\nevil: 1"), Field("x-value", "a\nb"), Field("x-value", "a\rb"),
    Field("x-value", "a\0b"),
    Field("x-value", " a"), Field("x-value", "a "),
    Field(":path"), Field(":authority"), Field(":status"),
    Field("Connection", "close", named: "connection"), Field("keep-alive"), Field("proxy-connection"),
    Field("transfer-encoding", "chunked"), Field("upgrade"), Field("te", "trailers"), Field("host"),
    Field("content-length"), Field("trailer"),
    Field("content-type"), Field("content-encoding"), Field("accept-encoding"), Field("connect-timeout-ms"),
    Field("Connect-Protocol-Version", named: "connect-protocol-version"), Field("connect-content-encoding"),
    Field("connect-accept-encoding"), Field("grpc-timeout"), Field("grpc-encoding"), Field("grpc-status"),
  ]

  func testHeadersOfTheUser() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        for field in self.fields {
          let options = CallOptions(headers: [field.name: [field.value]])
          try await self.expectRefused(field, embedded, "\(version.rawValue), user", options: options)
        }
      }
    }
  }

  func testHeadersOfInterceptors() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        for field in self.fields {
          for level in HeaderSetter.Level.allCases {
            for part in HeaderSetter.Part.allCases {
              let (name, value) = (field.name, field.value)
              let options = CallOptions(
                interceptors: [{ _ in HeaderSetter(name: name, value: value, level: level, part: part) }]
              )
              try await self.expectRefused(
                field,
                embedded,
                "\(version.rawValue), \(level), \(part)",
                options: options
              )
            }
          }
        }
      }
    }
  }

  private func expectRefused(
    _ field: Field,
    _ embedded: EmbeddedServer,
    _ what: String,
    options: CallOptions
  ) async throws {
    let (client, server) = (embedded.client, embedded.server)
    let expected = ExpectedError(.invalidArgument, field.named)
    let what = "\(field), \(what)"
    try await client.expectFailure(TestMethods.echo, expected, what, options: options)
    try await client.expectStreamFailure(TestMethods.count, expected, what, options: options)
    let sum = await client.clientStream(TestMethods.sum, options: options).closeAndReceive()
    expected.check(sum.error, what)
    let converse = await client.bidirectionalStream(TestMethods.converse, options: options).results.collect()
    expected.check(converse.error, what)
    XCTAssertEqual(server.requests.count, 0, what)
    XCTAssertEqual(server.journal.snapshot.acceptedConnections, 0, what)
  }

  /// What is allowed arrives: also trailers, where the server reads them.
  func testTrailersOfInterceptors() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        let options = CallOptions(
          interceptors: [
            { _ in HeaderSetter(name: "X-Checksum", value: "a, ü", level: .bytes, part: .trailers) }
          ]
        )
        let response = await embedded.client.unary(
          TestMethods.echo,
          .with { $0.payload.text = "x" },
          options: options
        )
        XCTAssertEqual(response.message?.payload.text, "x", "\(version.rawValue): \(response)")
        let record = try await embedded.server.endedRequest(to: TestMethods.echo.path)
        XCTAssertEqual(record.trailers["x-checksum"], ["a, ü"], version.rawValue)
      }
    }
  }

  /// The path is the method's, and an interceptor may change it.
  func testPaths() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        for path in ["", "no-slash", "/with space", "/with\r\nline", "/größe", "/a#b"] {
          let what = "'\(path)', \(version.rawValue)"
          try await embedded.client.expectFailure(
            unaryMethod(path),
            ExpectedError(.invalidArgument, "path"),
            what
          )
        }
        XCTAssertEqual(embedded.server.requests.count, 0, version.rawValue)
      }
    }
  }
}

/// Sets a header or a trailer.
private struct HeaderSetter: Interceptor {
  enum Level: CaseIterable {
    case messages, bytes
  }

  enum Part: CaseIterable {
    case headers, trailers
  }

  var name: String
  var value: String
  var level: Level
  var part: Part

  private func changed<Message>(_ request: HTTPRequest<Message>) -> HTTPRequest<Message> {
    var request = request
    switch self.part {
    case .headers: request.headers.add(name: self.name, value: self.value)
    case .trailers: request.trailers.add(name: self.name, value: self.value)
    }
    return request
  }

  func unaryFunction() -> UnaryFunction {
    guard self.level == .bytes else { return UnaryFunction() }
    return UnaryFunction(requestFunction: { request, proceed in proceed(.success(self.changed(request))) })
  }

  func streamFunction() -> StreamFunction {
    guard self.level == .bytes else { return StreamFunction() }
    return StreamFunction(requestFunction: { request, proceed in proceed(.success(self.changed(request))) })
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    guard self.level == .messages else { return UnaryMessageFunction() }
    return UnaryMessageFunction(requestFunction: { request, proceed in
      proceed(.success(self.changed(request)))
    })
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    guard self.level == .messages else { return StreamMessageFunction() }
    return StreamMessageFunction(requestFunction: { request, proceed in
      proceed(.success(self.changed(request)))
    })
  }
}
