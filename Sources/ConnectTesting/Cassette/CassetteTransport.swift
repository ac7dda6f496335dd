public import Connect
internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A transport that records calls to a cassette, and answers them from it.
///
/// It stands below everything: interceptors, codecs, protocols, streams and errors are the real ones.
///
/// ```swift
/// func testGreeting() async throws {
///   let transport = try CassetteTransport(forTest: "greeting", over: NIOHTTPClient())
///   addTeardownBlock { try await transport.finish() }
///   let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "https://demo.connectrpc.com"))
///   let response = try await client.unary(say, request).get()
///   XCTAssertEqual(response.sentence, "Hello!")
/// }
/// ```
///
/// `CONNECT_CASSETTE=record swift test --filter testGreeting` makes the calls and writes `Cassettes/greeting.json` beside the
/// test's file. From then on the test needs no server.
///
/// A call is answered by the first unused recorded call with the same method, protocol and messages. If there is none, it
/// fails with `failed_precondition`; the message shows what was asked, and the nearest recorded call.
public final class CassetteTransport: HTTPClientInterface, TestDouble {
  /// Where calls go.
  public enum Mode: String, Sendable, Hashable, CaseIterable {
    /// All calls are answered from the cassette.
    case replay
    /// All calls are made, and recorded in place of what the cassette had.
    case record
    /// Calls that are in the cassette are answered from it; others are made, and added.
    case recordMissing = "record-missing"
    /// All calls are made, and none is recorded.
    case passThrough = "pass-through"

    /// The environment variable that ``fromEnvironment()`` reads.
    public static let variable = "CONNECT_CASSETTE"

    /// The mode that `CONNECT_CASSETTE` says; ``replay`` if it is not set, or empty.
    ///
    /// - Throws: ``CassetteError`` for other texts.
    public static func fromEnvironment() throws(CassetteError) -> Mode {
      try self.named(ProcessInfo.processInfo.environment[self.variable] ?? "")
    }

    static func named(_ name: String) throws(CassetteError) -> Mode {
      if name.isEmpty { return .replay }
      if let mode = Mode(rawValue: name) { return mode }
      throw CassetteError(
        place: self.variable,
        problem: "\"\(name)\" is none of \(Mode.allCases.map(\.rawValue).joined(separator: ", "))"
      )
    }

    /// Advice on how to record a missing call.
    var advice: String { "\(Self.variable)=\(self.rawValue) in the environment of the test records it" }
  }

  /// When the parts of a response come.
  public enum Timing: Sendable, Hashable {
    /// Without waiting, one after the other.
    case atOnce
    /// After the same time as in the recording, on the executor's clock.
    case recorded
  }

  /// What was recorded; it grows while calls are recorded.
  public let cassette: Cassette
  /// Whether calls are recorded or answered from the cassette.
  public let mode: Mode
  private let base: (any HTTPClientInterface)?
  /// The executor of calls that no other transport makes.
  private let executor: any CallExecutor
  private let timing: Timing
  /// The cassette's file.
  private let path: String?

  /// A transport for a cassette that the caller loads and writes.
  ///
  /// - Parameters:
  ///   - cassette: Answers calls, and receives the recorded calls.
  ///   - base: Makes the calls; not used with ``Mode/replay``.
  ///   - mode: Which calls are made, recorded, or answered from the cassette.
  ///   - executor: Where calls live with ``Mode/replay``, for example in virtual time; nil for a new one in real time.
  ///   - timing: When the parts of a response from the cassette come.
  /// - Throws: ``CassetteError`` if the mode needs a transport and there is none.
  public init(
    _ cassette: Cassette,
    over base: (any HTTPClientInterface)? = nil,
    mode: Mode = .replay,
    executor: (any CallExecutor)? = nil,
    timing: Timing = .atOnce
  ) throws(CassetteError) {
    try Self.check(mode, hasBase: base != nil)
    self.cassette = cassette
    self.mode = mode
    self.base = base
    self.executor = executor ?? RealTimeExecutor()
    self.timing = timing
    self.path = nil
  }

  /// A transport for a test, with the cassette `Cassettes/NAME.json` in the folder of the test's file. At the test's end
  /// ``finish()`` has to be called.
  ///
  /// - Parameters:
  ///   - name: The file's name. Tests that share a cassette must not record at the same time.
  ///   - base: Makes the calls; evaluated only if it is needed.
  ///   - mode: Nil for what the environment says: see ``Mode/fromEnvironment()``.
  ///   - configuration: How the cassette writes calls down and finds them again.
  ///   - executor: Where calls live with ``Mode/replay``, for example in virtual time; nil for a new one in real time.
  ///   - timing: When the parts of a response from the cassette come.
  ///   - file: The path of the test's source file; by default the caller's.
  /// - Throws: ``CassetteError`` if the cassette is missing or broken, or if the mode needs a transport and there is none.
  public init(
    forTest name: String,
    over base: @autoclosure () -> (any HTTPClientInterface)?,
    mode: Mode? = nil,
    configuration: Cassette.Configuration = Cassette.Configuration(),
    executor: (any CallExecutor)? = nil,
    timing: Timing = .atOnce,
    file: String = #filePath
  ) throws(CassetteError) {
    let mode = if let mode { mode } else { try Mode.fromEnvironment() }
    let folder = URL(filePath: file).deletingLastPathComponent()
    let path = folder.appending(path: "Cassettes").appending(path: "\(name).json").path
    let isNew =
      switch mode {
      case .replay: false
      case .record, .passThrough: true
      case .recordMissing: !FileManager.default.fileExists(atPath: path)
      }
    let base = mode == .replay ? nil : base()
    try Self.check(mode, hasBase: base != nil)
    self.cassette =
      isNew
      ? try Cassette(configuration: configuration)
      : try Cassette(contentsOf: path, configuration: configuration)
    self.mode = mode
    self.base = base
    self.executor = executor ?? RealTimeExecutor()
    self.timing = timing
    self.path = path
  }

  private static func check(_ mode: Mode, hasBase: Bool) throws(CassetteError) {
    guard mode != .replay, !hasBase else { return }
    throw CassetteError(place: mode.rawValue, problem: "this mode needs a transport that makes the calls")
  }

  /// Ends a test: waits for the calls that are being recorded, writes the file of
  /// ``init(forTest:over:mode:configuration:executor:timing:file:)`` if there is something new, and reports what is wrong.
  ///
  /// - Throws: ``ExpectationFailure`` with the asked calls that are missing, and the recorded calls that were never asked;
  ///   ``CassetteError`` if calls could not be recorded.
  public func finish() async throws {
    switch self.mode {
    case .passThrough: return
    case .replay: break
    case .record, .recordMissing:
      guard await self.cassette.waitForRecordings(within: .seconds(10)) else {
        throw CassetteError(
          place: self.path ?? "cassette",
          problem: "calls have not ended, so they cannot be recorded; cancel them before the end"
        )
      }
      if let path = self.path, self.mode == .record || self.cassette.hasNewCalls {
        try self.cassette.write(to: path)
      } else {
        try self.cassette.checkRecordings()
      }
      if self.mode == .record { return }
    }
    try self.requireAllAsked()
  }

  private func requireAllAsked() throws(ExpectationFailure) {
    let (missing, unused) = (self.cassette.missingCalls, self.cassette.unusedCalls)
    let name = self.path ?? "the cassette"
    var lines: [String] = []
    if !missing.isEmpty {
      lines.append("\(name): \(missing.count) calls were asked and are not there")
      lines += missing
    }
    if !unused.isEmpty {
      lines.append("\(name): \(unused.count) calls were recorded and never asked")
      lines += unused.map { "- \($0)" }
      lines.append("\(Mode.variable)=record in the environment of the test leaves them out")
    }
    if !lines.isEmpty { throw ExpectationFailure(lines.joined(separator: "\n")) }
  }

  // MARK: HTTPClientInterface

  public var authenticatesClient: Bool { self.base?.authenticatesClient ?? true }

  public var executors: [any CallExecutor] { self.mode == .replay ? [] : self.base?.executors ?? [] }

  public func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    guard self.mode != .replay, let base = self.base else {
      return CassetteEndpoint(self, over: nil, on: self.executor)
    }
    let endpoint = try base.endpoint(for: origin, on: executor, requiresHTTP2: requiresHTTP2)
    if self.mode == .passThrough { return endpoint }
    return CassetteEndpoint(self, over: endpoint, on: endpoint.executor)
  }

  fileprivate func startStream(
    _ request: HTTPStreamRequest,
    over endpoint: (any HTTPEndpoint)?,
    on executor: any CallExecutor,
    _ handler: any HTTPStreamHandler
  ) -> any HTTPStream {
    let cassette = self.cassette
    // Calls recorded in the mode `record` can be asked once all are recorded.
    let isUsed = self.mode == .recordMissing
    let record = endpoint.map { endpoint -> ReplayedCall.Fallback in
      { handler in
        RecordingCall(request, cassette, isUsed: isUsed, on: executor, handler: handler) {
          endpoint.startStream(request, handler: $0)
        }
      }
    }
    if self.mode == .record, let record { return record(handler) }
    return ReplayedCall(
      request,
      cassette,
      on: executor,
      isTimed: self.timing == .recorded,
      handler: handler,
      fallback: record
    )
  }
}

/// The way to a cassette, or through it to an origin.
private final class CassetteEndpoint: HTTPEndpoint {
  private let transport: CassetteTransport
  private let base: (any HTTPEndpoint)?
  let executor: any CallExecutor

  init(_ transport: CassetteTransport, over base: (any HTTPEndpoint)?, on executor: any CallExecutor) {
    self.transport = transport
    self.base = base
    self.executor = executor
  }

  var maximumHeaderListSize: Int { self.base?.maximumHeaderListSize ?? HeaderListSize.defaultLimit }
  var underlying: (any HTTPEndpoint)? { self.base }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.transport.startStream(request, over: self.base, on: self.executor, handler)
  }
}
