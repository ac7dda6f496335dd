internal import Connect
internal import ConnectProtobufC
internal import ConnectTesting
internal import SwiftProtobuf
internal import Synchronization
import XCTest

@testable import ConnectReflection

/// The client with servers in memory, which do as they like.
final class ReflectionClientTests: XCTestCase {
  private final class Journal: Sendable {
    private let requests = Mutex<[Request]>([])

    func add(_ request: Request) { self.requests.withLock { $0.append(request) } }

    var files: [String] { self.requests.withLock { $0.map(\.fileByFilename).filter { !$0.isEmpty } } }
  }

  // MARK: Servers that do well

  func testAllProtocols() async throws {
    let set = try await ProtoFileSet.test()
    let settings: [(NetworkProtocol, any Codec)] = [
      (.connect, ProtoCodec()), (.connect, JSONCodec()), (.grpc, ProtoCodec()), (.grpcWeb, ProtoCodec()),
      (.grpcWebText, ProtoCodec()), (.automatic(), ProtoCodec()),
    ]
    for version in ReflectionVersion.allCases {
      for (networkProtocol, codec) in settings {
        let what = "\(version), \(networkProtocol), \(codec.name)"
        let journal = Journal()
        let server = FakeServer(version, set) { journal.add($0) }
        let client = server.client(networkProtocol, codec: codec)
        let names = try await client.serviceNames()
        XCTAssertEqual(names, set.serviceNames, what)
        let files = try await client.allFiles()
        XCTAssertEqual(Set(files.fileNames), Set(set.fileNames), what)
        XCTAssertEqual(try files.serialized(), try set.serialized(), what)
        XCTAssertEqual(journal.files.count, 3, what)
        XCTAssertEqual(try files.descriptorPool().services.count, 1, what)
      }
    }
  }

  func testSymbols() async throws {
    let set = try await ProtoFileSet.test()
    let journal = Journal()
    let client = FakeServer(.v1, set) { journal.add($0) }.client()
    for symbol in [
      "connect.test.v1.TestService/Echo", "connect.test.v1.Payload", "google.protobuf.Any.type_url",
    ] {
      let files = try await client.files(containing: [symbol])
      XCTAssertNoThrow(try files.source(of: symbol), symbol)
    }
    let before = journal.files.count
    let files = try await client.files(containing: [
      "connect.test.v1.TestService", "connect.test.v1.Payload", "google.protobuf.Any",
    ])
    XCTAssertEqual(files.fileNames.count, 4)
    XCTAssertEqual(journal.files.count - before, 2, "duration and timestamp; the others were there")
    await expectError(.notFound, "did you mean connect.test.v1.TestService?") {
      try await client.files(containing: ["connect.test.v1.TestServce"])
    }
    await expectError(.notFound, "no connect.test.v1.Payload.nothing") {
      try await client.files(containing: ["connect.test.v1.Payload.nothing"])
    }
    await expectError(.notFound, "does not know nothing") { try await client.files(containing: ["nothing"]) }
    await expectError(.invalidArgument, "no symbols") { try await client.files(containing: []) }
  }

  /// More requests than go in one stream.
  func testManyServices() async throws {
    let names = (0..<300).map { "S\($0)" }
    let server = FakeServer { request in
      switch request.messageRequest {
      case .listServices: .services(names)
      case .fileContainingSymbol(let name): .files([File("\(name).proto", services: [name])])
      default: .error(.internalError)
      }
    }
    for networkProtocol in [NetworkProtocol.grpc, .connect] {
      let files = try await server.client(networkProtocol).allFiles()
      XCTAssertEqual(files.serviceNames, names.sorted())
    }
  }

  /// A server lists what it has no descriptors of.
  func testServicesWithoutFiles() async throws {
    let server = FakeServer { request in
      switch request.messageRequest {
      case .listServices: .services(["A", "B"])
      case .fileContainingSymbol("A"): .files([File("a.proto", services: ["A"])])
      default: .error(.notFound)
      }
    }
    let files = try await server.client().allFiles()
    XCTAssertEqual(files.serviceNames, ["A"])
    for symbol in ["B", "/B/Get"] {
      await expectError(.notFound, "the server lists B, and its reflection does not know B") {
        try await server.client().files(containing: [symbol])
      }
    }
    let nothing = FakeServer { $0.listServices.isEmpty ? .error(.notFound) : .services(["A"]) }
    await expectError(.notFound, "no file of the services that it lists: A") {
      try await nothing.client().allFiles()
    }
    await expectError(.notFound, "lists no service") {
      try await FakeServer { _ in .services([]) }.client().allFiles()
    }
  }

  // MARK: Servers that do not

  func testNoReflection() async throws {
    let config = ProtocolClientConfig(host: "http://memory")
    let client = ReflectionClient(ProtocolClient(httpClient: InMemoryTransport(), config: config))
    await expectError(.unimplemented, "http://memory has no server reflection", "a descriptor set") {
      try await client.serviceNames()
    }
    let empty = FakeServer(.v1) { _ in nil }
    empty.transport.onRaw("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo") { exchange in
      await exchange.reset(code: 2)
    }
    await expectError(.internalError) { try await empty.client().serviceNames() }
  }

  func testAnswersThatMakeNoSense() async throws {
    let answers: [(Response?, Code, String)] = [
      (nil, .internalError, "0 answers to 1 requests"),
      (Response(), .internalError, "no list of services"),
      (.files([]), .internalError, "no list of services"),
      (
        .error(.permissionDenied, "go\u{1b} away"), .permissionDenied, "the list of services: go\u{fffd} away"
      ),
      (.error(.ok), .unknown, "the list of services"),
    ]
    for (answer, code, text) in answers {
      await expectError(code, text) { try await FakeServer { _ in answer }.client().serviceNames() }
    }
    let noFiles: [(Response, Code, String)] = [
      (Response(), .internalError, "no file for a.B"), (.files([]), .internalError, "no file for a.B"),
      (.services([]), .internalError, "no file for a.B"),
      (
        .with {
          $0.fileDescriptorResponse.fileDescriptorProto = ["what is this?".data(using: .utf8) ?? .init()]
        },
        .internalError, "does not decode"
      ),
      (.files([File("x.proto")]), .notFound, "no a.B"),
      (.files([.with { $0.messageType = [.with { $0.name = "a b" }] }]), .internalError, "is no name"),
      (
        .files([File("x", imports: ["y"]), File("y", imports: ["x"])]), .internalError,
        "imports itself"
      ),
    ]
    for (answer, code, text) in noFiles {
      await expectError(code, text) {
        try await FakeServer { _ in answer }.client().files(containing: ["a.B"])
      }
    }
  }

  /// An import is missing whose type is used: the server's fault, whatever it answers.
  func testMissingImport() async throws {
    let answers: [(Response, String)] = [
      (.error(.notFound), "(not_found)"), (.error(.unknown, "no such file"), "(no such file)"),
      (.files([File("c.proto")]), "(other files came in its place)"),
      (.files([]), "(other files came in its place)"), (Response(), "(the answer has no file)"),
    ]
    for (answer, reason) in answers {
      let server = FakeServer { request in
        request.fileByFilename.isEmpty
          ? .files([File("a.proto", imports: ["b.proto"], services: ["S"], uses: "b.Type")]) : answer
      }
      let lack = "lacks b.proto, which a.proto imports for the type b.Type \(reason)"
      await expectError(.internalError, lack) { try await server.client().files(containing: ["S"]) }
    }
  }

  /// Some servers end the stream at a file that they lack. The others are there, in whatever place.
  func testMissingImportThatEndsTheStream() async throws {
    let imports = (0..<100).map { "\($0).proto" }
    for networkProtocol in [NetworkProtocol.grpc, .connect] {
      for used in ["b50.Held", "b3.Type"] {
        let server = FakeServer { request in
          switch request.fileByFilename {
          case "": return .files([File("a.proto", imports: imports, services: ["S"], uses: used)])
          case "3.proto", "70.proto": throw ConnectError(code: .unknown, message: "lost")
          case let name:
            return .files([
              .with {
                $0.name = name
                $0.package = "b\(name.prefix { $0 != "." })"
                $0.messageType = [.with { $0.name = "Held" }]
              }
            ])
          }
        }
        let client = server.client(networkProtocol)
        if used == "b50.Held" {
          let files = try await client.files(containing: ["S"])
          XCTAssertEqual(files.fileNames.count, 99)
          XCTAssertNoThrow(try files.descriptorPool().message("Holder"))
        } else {
          await expectError(
            .internalError,
            "lacks 3.proto, which a.proto imports for the type b3.Type (lost)"
          ) {
            try await client.files(containing: ["S"])
          }
        }
      }
    }
  }

  /// What concerns the caller, and what another time may change, is not the file's.
  func testImportThatIsRefused() async throws {
    for code in [Code.permissionDenied, .unauthenticated, .unavailable, .deadlineExceeded] {
      let inAnswer = FakeServer { request in
        request.fileByFilename.isEmpty
          ? .files([File("a.proto", imports: ["b.proto"], services: ["S"])]) : .error(code)
      }
      await expectError(code, "b.proto, which a.proto imports") {
        try await inAnswer.client().files(containing: ["S"])
      }
      let atEnd = FakeServer { request in
        guard request.fileByFilename.isEmpty else { throw ConnectError(code: code) }
        return .files([File("a.proto", imports: ["b.proto"], services: ["S"])])
      }
      await expectError(code) { try await atEnd.client().files(containing: ["S"]) }
    }
  }

  /// Options need the file, or nothing does.
  func testImportThatOnlyOptionsNeed() async throws {
    let server = FakeServer { request in
      guard request.fileByFilename.isEmpty else { return .error(.notFound) }
      var file = File("a.proto", imports: ["x.proto", "b.proto"], services: ["S"], uses: "Holder")
      file.dependency.append("y.proto")
      file.publicDependency = [1, 2]
      return .files([file])
    }
    let files = try await server.client().files(containing: ["S"])
    XCTAssertEqual(files.fileNames, ["a.proto"])
    XCTAssertTrue(try files.source(ofFile: "a.proto").contains("import public \"b.proto\";"))
    XCTAssertEqual(try files.descriptorPool().services.map(\.name), ["S"])
  }

  /// All runtimes have these built in, so that some servers do not give them.
  func testFilesOfGoogleProtobufAreSupplied() async throws {
    let server = FakeServer { request in
      guard request.fileByFilename.isEmpty else { return .error(.notFound) }
      let imports = ["google/protobuf/api.proto", "google/protobuf/timestamp.proto"]
      return .files([File("a.proto", imports: imports, services: ["S"], uses: "google.protobuf.Timestamp")])
    }
    let files = try await server.client().files(containing: ["S"])
    // With what api.proto imports.
    XCTAssertEqual(files.fileNames.count, 6, "\(files.fileNames)")
    XCTAssertNoThrow(try files.descriptorPool().message("google.protobuf.Api"))
  }

  /// Each file imports another one, without end.
  func testEndlessImports() async throws {
    let server = FakeServer { request in
      let name = request.fileByFilename
      return .files([File(name, imports: ["\(name)x"], services: ["S"])])
    }
    let limits = ReflectionClient.Limits(maximumFiles: 50)
    await expectError(.resourceExhausted, "more than 50 files") {
      try await server.client(limits: limits).files(containing: ["S"])
    }
    let wide = FakeServer { _ in
      .files([File("a", imports: (0..<100).map { "\($0)" }, services: ["S"])])
    }
    await expectError(.resourceExhausted, "more than 50 files") {
      try await wide.client(limits: limits).files(containing: ["S"])
    }
  }

  func testLimits() async throws {
    let large = String(repeating: "x", count: 100_000)
    let server = FakeServer { request in
      let name = request.fileByFilename.isEmpty ? "a" : request.fileByFilename
      return .files([
        .with {
          $0.name = name
          $0.dependency = ["\(name)a"]
          $0.options.javaPackage = large
          $0.service = [.with { $0.name = "S" }]
        }
      ])
    }
    await expectError(.resourceExhausted, "1000000 bytes") {
      try await server.client(limits: .init(maximumBytes: 1_000_000)).files(containing: ["S"])
    }
    let many = FakeServer { _ in .services((0..<101).map { "S\($0)" }) }
    await expectError(.resourceExhausted, "more than 100 services") {
      try await many.client(limits: .init(maximumServices: 100)).serviceNames()
    }
  }

  func testEndlessAnswers() async throws {
    let server = FakeServer { _ in nil }
    server.transport.onBidirectionalStream(ReflectionVersion.v1.method) { _, responses, _ in
      while true { try await responses.send(.services([])) }
    }
    await expectError(.internalError, "more answers than requests") {
      try await server.client().serviceNames()
    }
  }
}
