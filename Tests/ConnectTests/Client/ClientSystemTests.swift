import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// What a program gives to all of its clients.
final class ClientSystemTests: XCTestCase {
  private typealias Record = Observed<[String]>

  /// Says when it sees a request and a response.
  private struct Tag: Interceptor {
    let name: String
    let record: Record

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(
        requestFunction: { request, proceed in
          self.record.update { $0.append("> \(self.name)") }
          proceed(.success(request))
        },
        responseFunction: { response, proceed in
          self.record.update { $0.append("< \(self.name)") }
          proceed(response)
        }
      )
    }
  }

  /// A transport that is no test double, as far as the library knows.
  private struct PlainTransport: HTTPClientInterface {
    let base: InMemoryTransport

    init() {
      self.base = InMemoryTransport()
      self.base.onUnary(TestMethods.echo) { request, _ in .with { $0.payload = request.payload } }
    }

    func endpoint(
      for origin: Origin,
      on executor: (any CallExecutor)?,
      requiresHTTP2: Bool
    ) throws(ConnectError) -> any HTTPEndpoint {
      try self.base.endpoint(for: origin, on: executor, requiresHTTP2: requiresHTTP2)
    }
  }

  private static func tag(_ name: String, _ record: Record) -> InterceptorFactory {
    { _ in Tag(name: name, record: record) }
  }

  /// Runs in a process, so to speak, in which nothing has happened.
  private func inNewProcess(_ body: () async throws -> Void) async rethrows {
    try await ClientRegistry.$current.withValue(ClientRegistry()) { try await body() }
  }

  private func expectRefusal(_ part: String, line: UInt = #line, _ body: () throws -> Void) {
    do {
      try body()
      XCTFail("no error", line: line)
    } catch {
      let error = error as? ConnectError
      XCTAssertEqual(error?.code, .failedPrecondition, line: line)
      XCTAssertEqual(error?.message?.contains(part), true, error?.message ?? "", line: line)
    }
  }

  private func call(_ client: ProtocolClient, _ options: CallOptions = CallOptions()) async throws {
    _ = try await client.unary(TestMethods.echo, .init(), options: options).get()
  }

  func testInterceptorsStandOutsideOfAllOthersInOrder() async throws {
    try await self.inNewProcess {
      let record = Record([])
      try ClientSystem.bootstrap(interceptors: [Self.tag("one", record), Self.tag("two", record)])
      let client = ProtocolClient(
        httpClient: PlainTransport(),
        config: ProtocolClientConfig(
          host: "http://test",
          interceptors: [Self.tag("client", record)],
          methodInterceptors: { _ in [Self.tag("method", record)] }
        )
      )
      var options = CallOptions()
      options.interceptors = [Self.tag("call", record)]
      try await self.call(client, options)
      let names = ["one", "two", "client", "method", "call"]
      XCTAssertEqual(record.value, names.map { "> \($0)" } + names.reversed().map { "< \($0)" })
    }
  }

  func testClientsWithoutInterceptorsHaveThem() async throws {
    try await self.inNewProcess {
      let record = Record([])
      try ClientSystem.bootstrap(interceptors: [Self.tag("one", record)])
      for _ in 0..<2 {
        let client = ProtocolClient(
          httpClient: PlainTransport(),
          config: ProtocolClientConfig(host: "http://test")
        )
        try await self.call(client)
        // They are not among those of the configuration, which another client may get.
        XCTAssertTrue(client.config.interceptors.isEmpty)
        try await self.call(ProtocolClient(httpClient: PlainTransport(), config: client.config))
      }
      XCTAssertEqual(record.value, Array(repeating: ["> one", "< one"], count: 4).flatMap { $0 })
    }
  }

  func testReplacingInterceptorsLeavesThem() async throws {
    try await self.inNewProcess {
      let record = Record([])
      try ClientSystem.bootstrap(interceptors: [Self.tag("one", record)])
      let client = ProtocolClient(
        httpClient: PlainTransport(),
        config: ProtocolClientConfig(
          host: "http://test",
          interceptors: [Self.tag("client", record)],
          methodInterceptors: { _ in .replacing([Self.tag("method", record)]) }
        )
      )
      try await self.call(client)
      XCTAssertEqual(record.value, ["> one", "> method", "< method", "< one"])
    }
  }

  func testFactoriesGetTheConfigurationOfTheClient() async throws {
    try await self.inNewProcess {
      let record = Record([])
      try ClientSystem.bootstrap(interceptors: [{ config in Tag(name: config.host, record: record) }])
      let client = ProtocolClient(
        httpClient: PlainTransport(),
        config: ProtocolClientConfig(host: "http://test")
      )
      try await self.call(client)
      XCTAssertEqual(record.value, ["> http://test", "< http://test"])
    }
  }

  func testSecondCallIsRefused() async throws {
    try await self.inNewProcess {
      let record = Record([])
      try ClientSystem.bootstrap(interceptors: [Self.tag("one", record)])
      self.expectRefusal("called before") {
        try ClientSystem.bootstrap(interceptors: [Self.tag("two", record)])
      }
      let client = ProtocolClient(
        httpClient: PlainTransport(),
        config: ProtocolClientConfig(host: "http://test")
      )
      self.expectRefusal("called before") { try ClientSystem.bootstrap(interceptors: []) }
      try await self.call(client)
      XCTAssertEqual(record.value, ["> one", "< one"])
    }
  }

  func testCallAfterTheFirstClientIsRefused() async throws {
    try await self.inNewProcess {
      let record = Record([])
      let client = ProtocolClient(
        httpClient: PlainTransport(),
        config: ProtocolClientConfig(host: "http://test")
      )
      for _ in 0..<2 {
        self.expectRefusal("a client before") {
          try ClientSystem.bootstrap(interceptors: [Self.tag("one", record)])
        }
      }
      try await self.call(client)
      try await self.call(ProtocolClient(httpClient: PlainTransport(), config: client.config))
      XCTAssertEqual(record.value, [])
    }
  }

  func testTestDoublesHaveThemOnlyIfAsked() async throws {
    for isAsked in [false, true] {
      try await self.inNewProcess {
        let record = Record([])
        try ClientSystem.bootstrap(interceptors: [Self.tag("one", record)], includingTestDoubles: isAsked)
        let transport = InMemoryTransport()
        transport.onUnary(TestMethods.echo) { request, _ in .with { $0.payload = request.payload } }
        let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "http://test"))
        try await self.call(client)
        XCTAssertEqual(record.value, isAsked ? ["> one", "< one"] : [])
      }
    }
  }

  func testTestDoublesBeforeForbidOnlyWhatTheyWouldLack() async throws {
    try await self.inNewProcess {
      _ = ProtocolClient(httpClient: InMemoryTransport(), config: ProtocolClientConfig(host: "http://test"))
      self.expectRefusal("a client before") {
        try ClientSystem.bootstrap(interceptors: [], includingTestDoubles: true)
      }
      try ClientSystem.bootstrap(interceptors: [])
    }
  }

  func testOnlyOneOfManyThreadsSucceeds() async throws {
    await self.inNewProcess {
      let count = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<100 {
          group.addTask { (try? ClientSystem.bootstrap(interceptors: [])) != nil }
        }
        return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      XCTAssertEqual(count, 1)
    }
  }

  func testStreamsHaveThem() async throws {
    try await self.inNewProcess {
      let record = Record([])
      let factory: InterceptorFactory = { _ in StreamTag(record: record) }
      try ClientSystem.bootstrap(interceptors: [factory])
      let transport = PlainTransport()
      transport.base.onServerStream(TestMethods.count) { request, responses, _ in
        try await responses.send(.with { $0.number = request.from })
      }
      let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "http://test"))
      for try await _ in client.serverStream(TestMethods.count, .init()).messages {}
      XCTAssertEqual(record.value, ["stream"])
    }
  }

  private struct StreamTag: Interceptor {
    let record: Record

    func streamFunction() -> StreamFunction {
      StreamFunction(requestFunction: { request, proceed in
        self.record.update { $0.append("stream") }
        proceed(.success(request))
      })
    }
  }
}
