internal import Connect
package import NIOCore
internal import Synchronization

/// Recorded calls: what clients sent to a server, and what it answered.
///
/// A ``CassetteTransport`` records calls to a cassette, and answers calls from it. Tests most often leave the cassette to
/// ``CassetteTransport/init(forTest:over:mode:configuration:executor:timing:file:)``.
///
/// Its file is JSON, to be read and reviewed by people: sorted, with messages as JSON where their types are known (see
/// ``Messages``), without secrets (see ``Redaction``). A call can be edited there, as long as it stays valid.
public final class Cassette: Sendable {
  private struct State {
    var size = 0
    var recordedCount = 0
    var foundPaths: Set<String> = []
    /// Why calls could not be recorded.
    var problems: [CassetteError] = []
    /// The asked calls that are missing.
    var misses: [String] = []
    /// ``Cassette/schema`` in base64.
    var schema: String?
  }

  /// What a call counts besides its bytes, so that the number of calls is bounded, too.
  private static let trackSize = 1 << 10

  let rules: CassetteRules
  let tracks = CassetteTracks()
  private let state = Mutex(State())
  /// How many calls are being recorded.
  private let openCount = Observed(0)

  /// An empty cassette.
  ///
  /// - Throws: ``CassetteError`` if a path of the redaction is invalid.
  public init(configuration: Configuration = Configuration()) throws(CassetteError) {
    self.rules = try CassetteRules(configuration)
  }

  // MARK: Files

  /// Reads a cassette.
  ///
  /// - Throws: ``CassetteError`` if there is no such file, or with the place in it that is wrong.
  public convenience init(
    contentsOf path: String,
    configuration: Configuration = Configuration()
  ) throws(CassetteError) {
    let text = try CassetteText.read(path, limit: configuration.maximumSize)
    try self.init(text: text, named: path, configuration: configuration)
  }

  /// A cassette from the text of its file.
  ///
  /// - Parameters:
  ///   - text: The file's content: JSON.
  ///   - name: For errors.
  ///   - configuration: How calls are written down and found again, and the limits on size.
  /// - Throws: ``CassetteError`` with the place that is wrong.
  public init(
    text: String,
    named name: String = "cassette",
    configuration: Configuration = Configuration()
  ) throws(CassetteError) {
    self.rules = try CassetteRules(configuration)
    let (exchanges, schema) = try CassetteText.parse(text, named: name, limit: configuration.maximumBodySize)
    self.state.withLock { ($0.size, $0.schema) = (text.utf8.count, schema) }
    for (index, exchange) in exchanges.enumerated() {
      do throws(CassetteError) {
        let script = try ExchangeScript(exchange, self.rules, place: "exchanges[\(index)]")
        self.state.withLock { $0.foundPaths.formUnion(self.rules.paths(in: exchange)) }
        self.tracks.append(CassetteTracks.Track(exchange: exchange, script: script, isUsed: false))
      } catch {
        throw CassetteError(place: "\(name): \(error.place)", problem: error.problem)
      }
    }
  }

  /// The file's text: all calls that have ended, sorted by method and request. Equal calls keep their order.
  public var text: String {
    CassetteText.make(
      self.tracks.ended.map(\.track.exchange),
      schema: self.state.withLock { $0.schema },
      hasTimes: self.rules.configuration.recordsTiming
    )
  }

  /// Writes the file, and creates its folder if it is missing. Calls in flight are left out.
  ///
  /// - Throws: ``CassetteError`` if a call could not be recorded, if a path of the redaction fits no message, or if the file
  ///   cannot be written. The file then stays as it was; ``text`` has what could be recorded.
  public func write(to path: String) throws(CassetteError) {
    try self.checkRecordings()
    try self.writeRecorded(to: path)
  }

  /// As ``write(to:)``, even if there are ``problems``.
  package func writeRecorded(to path: String) throws(CassetteError) {
    try self.rules.checkPaths(found: self.state.withLock { $0.foundPaths })
    try CassetteText.write(self.text, to: path)
  }

  /// Checks, before anything is recorded, that the redaction's paths are fields of known messages.
  ///
  /// - Throws: ``CassetteError`` for the first one that is not.
  package func checkRedaction() throws(CassetteError) { try self.rules.checkPaths(found: []) }

  /// - Throws: ``CassetteError`` for calls that could not be recorded.
  func checkRecordings() throws(CassetteError) {
    let problems = self.problems
    guard let first = problems.first else { return }
    guard problems.count > 1 else { throw first }
    let all = problems.map { "- \($0)" }.joined(separator: "\n")
    throw CassetteError(place: "", problem: "\(problems.count) calls could not be recorded:\n\(all)")
  }

  // MARK: Looking

  /// Whether calls were recorded that the file does not have.
  var hasNewCalls: Bool { self.state.withLock { $0.recordedCount > 0 || !$0.problems.isEmpty } }

  /// Whether a call had no room.
  package var isFull: Bool {
    self.state.withLock { $0.size > self.rules.configuration.maximumSize }
  }

  /// Why calls could not be recorded: the first ones.
  package var problems: [CassetteError] { self.state.withLock { $0.problems } }

  /// How many calls are being recorded.
  package var openCallCount: Int { self.openCount.value }

  /// How many calls of each method there are, for each path.
  package var methodCounts: [String: Int] {
    self.tracks.ended.reduce(into: [:]) { $0[$1.track.exchange.path, default: 0] += 1 }
  }

  /// A `google.protobuf.FileDescriptorSet` with the types of the messages, for programs that have no other source of them.
  package var schema: ByteBuffer? {
    get { self.state.withLock { $0.schema }.flatMap { Base64.decode($0) } }
    set {
      let text = newValue.map { String(buffer: Base64.encode($0, alphabet: .standard, isPadded: true)) }
      self.state.withLock { $0.schema = text }
    }
  }

  /// How many calls there are.
  public var count: Int { self.tracks.ended.count }

  /// What was recorded and never asked: method and request of each call. Calls of server reflection do not count: a proxy
  /// records those of clients that look up types, and other clients do not make them.
  public var unusedCalls: [String] {
    self.tracks.ended.map(\.track).filter { !$0.isUsed && !$0.exchange.isReflection }.map(\.exchange.summary)
  }

  /// How many calls of server reflection there are.
  package var reflectionCount: Int { self.tracks.ended.count { $0.track.exchange.isReflection } }

  /// The asked calls that are missing, each with the nearest recorded call.
  public var missingCalls: [String] { self.state.withLock { $0.misses } }

  func addMiss(_ description: String) {
    // The first misses say enough.
    self.state.withLock { if $0.misses.count < 100 { $0.misses.append(description) } }
  }

  // MARK: Recording

  /// Keeps a place for a call that begins.
  func beginRecording() -> Int {
    self.openCount.update { $0 += 1 }
    self.state.withLock { $0.size += Self.trackSize }
    return self.tracks.append(nil)
  }

  /// Counts bytes of a call that is in flight.
  ///
  /// - Returns: Whether the cassette has room for them.
  func reserve(_ count: Int) -> Bool {
    self.state.withLock { state in
      state.size += count
      return state.size <= self.rules.configuration.maximumSize
    }
  }

  /// - Parameter isUsed: Whether the call counts as asked, so that it answers no other call of the same test.
  func endRecording(_ index: Int, _ raw: RawExchange, isUsed: Bool) {
    do throws(CassetteError) {
      let (exchange, found) = try RecordedExchange.make(raw, self.rules)
      // A call that cannot be served is not recorded.
      let script = try ExchangeScript(exchange, self.rules, place: exchange.path)
      self.state.withLock { state in
        state.recordedCount += 1
        state.foundPaths.formUnion(found)
      }
      self.tracks.end(index, CassetteTracks.Track(exchange: exchange, script: script, isUsed: isUsed))
    } catch {
      self.state.withLock { state in
        // A full cassette stays full, so that it does not record only small calls.
        if !raw.isDropped { state.size -= raw.size }
        if state.problems.count < 100 { state.problems.append(error) }
      }
    }
    self.openCount.update { $0 -= 1 }
  }

  /// Waits for the calls that are being recorded.
  ///
  /// - Returns: Whether all have ended.
  func waitForRecordings(within limit: Duration) async -> Bool {
    await self.openCount.wait(within: limit) { $0 == 0 ? true : nil } ?? false
  }
}

extension RecordedExchange {
  /// Whether it is a call of `grpc.reflection.v1.ServerReflection`, or of an older version.
  var isReflection: Bool {
    let parts = self.path.split(separator: "/")
    guard parts.count >= 2 else { return false }
    let service = parts[parts.count - 2]
    return service.hasPrefix("grpc.reflection.v1") && service.hasSuffix(".ServerReflection")
  }

  /// For people, in one line.
  var summary: String {
    let messages = self.messages.map(\.line).joined(separator: " ")
    return "\(self.path) (\(self.wire)): \(messages.prefix(500))"
  }

  var request: Cassette.Request { self.request(upTo: .max) }

  /// The request with its first `count` messages.
  func request(upTo count: Int) -> Cassette.Request {
    Cassette.Request(
      path: self.path,
      headers: self.headers,
      messages: self.messages.prefix(count).map(\.line)
    )
  }
}
