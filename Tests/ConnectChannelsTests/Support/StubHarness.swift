import XCTest

@testable import ConnectChannels

/// A lookup with its open queries and its result.
struct StubHarness {
  var resolution: StubResolution
  var random: SeededRandom
  /// The open queries, in the order in which they were sent.
  private(set) var open: [StubResolution.Query] = []
  private(set) var sent: [StubResolution.Query] = []
  private(set) var results: [Result<StubResolution.Answer, ResolutionError>] = []

  static func configuration(
    servers: Int = 2,
    search: [String] = [],
    attempts: Int = 2
  ) -> ResolverConfiguration {
    ResolverConfiguration(
      servers: (1...servers).map { .ip(IPAddress("10.0.0.\($0)")!, port: 53) },
      searchDomains: search,
      attempts: attempts
    )
  }

  init(
    _ question: StubResolution.Question,
    _ configuration: ResolverConfiguration = Self.configuration(),
    hosts: HostsFile = HostsFile(),
    seed: UInt64 = 1
  ) {
    self.resolution = StubResolution(question, configuration: configuration, hosts: hosts)
    self.random = SeededRandom(seed: seed)
    self.run(self.resolution.start(using: &self.random))
  }

  mutating func run(_ actions: [StubResolution.Action], file: StaticString = #filePath, line: UInt = #line) {
    for action in actions {
      XCTAssertTrue(self.results.isEmpty, "an action behind the result", file: file, line: line)
      switch action {
      case .send(let query):
        XCTAssertFalse(self.sent.contains { $0.id == query.id }, file: file, line: line)
        self.open.append(query)
        self.sent.append(query)
      case .stop(let id):
        XCTAssertTrue(self.open.contains { $0.id == id }, "stopped twice", file: file, line: line)
        self.open.removeAll { $0.id == id }
      case .finish(let result):
        self.results.append(result)
        XCTAssertTrue(self.open.isEmpty, "queries are left", file: file, line: line)
      }
    }
  }

  /// The most recent open query for a name.
  func query(_ wanted: String, _ type: DNSRecordType) -> StubResolution.Query? {
    self.open.last { Self.question($0) == .init(name: dns(wanted), type: type) }
  }

  static func question(_ query: StubResolution.Query) -> DNSMessage.Question {
    DNSMessage(decoding: query.bytes)!.questions[0]
  }

  /// Answers the open query.
  mutating func answer(
    _ wanted: String,
    _ type: DNSRecordType,
    flags: UInt16 = 0x8180,
    code: DNSResponseCode = .noError,
    file: StaticString = #filePath,
    line: UInt = #line,
    _ build: (inout ResponseBuilder) -> Void = { _ in }
  ) {
    guard let query = self.query(wanted, type) else {
      return XCTFail("no query for \(wanted) \(type)", file: file, line: line)
    }
    self.answer(query, flags: flags, code: code, build)
  }

  mutating func answer(
    _ query: StubResolution.Query,
    flags: UInt16 = 0x8180,
    code: DNSResponseCode = .noError,
    _ build: (inout ResponseBuilder) -> Void = { _ in }
  ) {
    var builder = ResponseBuilder(to: query.bytes, flags: flags, code: code)
    build(&builder)
    self.receive(builder.bytes, for: query)
  }

  mutating func receive(_ bytes: [UInt8], for query: StubResolution.Query) {
    self.run(self.resolution.received(bytes, for: query.id, using: &self.random))
  }

  mutating func timeOut(_ query: StubResolution.Query) {
    self.run(self.resolution.timedOut(query.id, using: &self.random))
  }

  mutating func fail(_ query: StubResolution.Query) {
    self.run(self.resolution.failed(query.id, "refused the connection", using: &self.random))
  }

  var error: ResolutionError? {
    if case .failure(let error) = self.results.first { error } else { nil }
  }

  var answer: StubResolution.Answer? { try? self.results.first?.get() }
  var addresses: [String]? { self.answer?.hosts.flatMap { $0.addresses.map(\.description) } }
}
