internal import Connect
internal import ConnectChannels
package import NIOCore
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Recorded calls: what clients sent to a server, and what it answered.
///
/// A ``CassetteTransport`` records calls to a cassette, and answers calls from it. Tests most often leave the cassette to
/// ``CassetteTransport/init(forTest:over:mode:configuration:executor:timing:file:)``.
///
/// Its file is JSON, to be read and reviewed by people: sorted, with messages as JSON where their types are known (see
/// ``Messages``), without secrets (see ``Redaction``). A call can be edited there, as long as it stays valid.
public final class Cassette: Sendable {
  /// A recorded call.
  struct Track: Sendable {
    var exchange: RecordedExchange
    var script: ExchangeScript
    var isUsed: Bool
  }

  private struct State {
    /// Nil for calls that are in flight. In the order in which the calls began.
    var tracks: [Track?] = []
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

  private static let formatVersion = 1
  /// What a call counts besides its bytes, so that the number of calls is bounded, too.
  private static let trackSize = 1 << 10
  /// The depth of messages, and of what is around them.
  private static let maximumDepth = JSONParser.maximumDepth + 8

  let rules: CassetteRules
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
    let text = try Self.read(path, limit: configuration.maximumSize)
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
    let value: JSONValue
    do throws(JSONParser.Failure) {
      value = try JSONParser.parse(text, maximumDepth: Self.maximumDepth)
    } catch {
      throw CassetteError(place: "\(name):\(error.line):\(error.column)", problem: error.problem)
    }
    self.state.withLock { $0.size = text.utf8.count }
    do throws(ServiceConfigError) {
      let root = JSONNode(value)
      let schema = try root.member("schema")?.string()
      self.state.withLock { $0.schema = schema }
      for exchange in try Self.exchanges(root, limit: configuration.maximumBodySize) {
        let index = self.state.withLock { $0.tracks.count }
        do throws(CassetteError) {
          try self.append(exchange, place: "exchanges[\(index)]")
        } catch {
          throw ServiceConfigError(path: error.place, problem: error.problem)
        }
      }
    } catch {
      throw CassetteError(
        place: error.path.isEmpty ? name : "\(name): \(error.path)",
        problem: error.problem
      )
    }
  }

  private static func exchanges(
    _ root: JSONNode,
    limit: Int
  ) throws(ServiceConfigError) -> [RecordedExchange] {
    try root.expectMembers(["cassette", "exchanges", "schema"])
    let version = try root.required("cassette")
    guard try version.integer(in: 1...Int.max) == Self.formatVersion else {
      throw version.error("is a version that is not known; this one knows \(Self.formatVersion)")
    }
    var exchanges: [RecordedExchange] = []
    for node in try root.required("exchanges").elements() {
      exchanges.append(try RecordedExchange(node, limit: limit))
    }
    return exchanges
  }

  /// - Throws: ``CassetteError`` if there is no such file, if it is too large, or if it is no text.
  package static func read(_ path: String, limit: Int) throws(CassetteError) -> String {
    guard FileManager.default.fileExists(atPath: path) else {
      throw CassetteError(
        place: path,
        problem: "there is no such cassette; \(CassetteTransport.Mode.record.advice)"
      )
    }
    do {
      let attribute = try FileManager.default.attributesOfItem(atPath: path)[.size]
      let size = (attribute as? UInt64).map { Int(clamping: $0) } ?? attribute as? Int ?? 0
      guard size <= limit else {
        throw CassetteError(
          place: path,
          problem: "has \(size) bytes, which is over the configuration's maximumSize of \(limit)"
        )
      }
      let data = try Data(contentsOf: URL(filePath: path))
      guard let text = String(validating: data, as: UTF8.self) else {
        throw CassetteError(place: path, problem: "is not UTF-8")
      }
      return text
    } catch let error as CassetteError {
      throw error
    } catch {
      throw CassetteError(place: path, problem: "cannot be read: \(error)")
    }
  }

  /// The file's text: all calls that have ended, sorted by method and request. Equal calls keep their order.
  public var text: String {
    let (exchanges, schema) = self.state.withLock { state in
      (state.tracks.compactMap { $0?.exchange }, state.schema)
    }
    let hasTimes = self.rules.configuration.recordsTiming
    let keyed = exchanges.enumerated().map { index, exchange in
      (key: [exchange.path, exchange.wire] + exchange.messages.map(\.line), index: index, exchange: exchange)
    }
    let sorted = keyed.sorted { one, two in
      one.key == two.key ? one.index < two.index : one.key.lexicographicallyPrecedes(two.key)
    }
    var root: [String: JSONValue] = [
      "cassette": .number("\(Self.formatVersion)"),
      "exchanges": .array(sorted.map { $0.exchange.json(hasTimes: hasTimes) }),
    ]
    if let schema { root["schema"] = .string(schema) }
    return JSONValue.members(root).text() + "\n"
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
    // The file that a link leads to is replaced, and keeps its permissions.
    let url = URL(filePath: path).resolvingSymlinksInPath()
    let permissions = try? FileManager.default.attributesOfItem(atPath: url.path(percentEncoded: false))[
      .posixPermissions
    ]
    do {
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try Data(self.text.utf8).write(to: url, options: .atomic)
      if let permissions {
        try FileManager.default.setAttributes(
          [.posixPermissions: permissions],
          ofItemAtPath: url.path(percentEncoded: false)
        )
      }
    } catch {
      throw CassetteError(place: path, problem: "cannot be written: \(error)")
    }
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
    self.tracks.reduce(into: [:]) { $0[$1.track.exchange.path, default: 0] += 1 }
  }

  /// A `google.protobuf.FileDescriptorSet` with the types of the messages, for programs that have no other source of them.
  package var schema: ByteBuffer? {
    get { self.state.withLock { $0.schema }.flatMap { Base64.decode($0) } }
    set {
      let text = newValue.map { String(buffer: Base64.encode($0, alphabet: .standard, isPadded: true)) }
      self.state.withLock { $0.schema = text }
    }
  }

  /// The ``schema`` in a cassette's text. Nothing else is read.
  package static func schema(in text: String) -> ByteBuffer? {
    guard case .object(let members) = try? JSONParser.parse(text, maximumDepth: Self.maximumDepth),
      case .string(let schema) = members.first(where: { $0.name == "schema" })?.value
    else { return nil }
    return Base64.decode(schema)
  }

  /// How many calls there are.
  public var count: Int { self.state.withLock { $0.tracks.count { $0 != nil } } }

  /// What was recorded and never asked: method and request of each call. Calls of server reflection do not count: a proxy
  /// records those of clients that look up types, and other clients do not make them.
  public var unusedCalls: [String] {
    self.state.withLock { $0.tracks.compactMap { $0 } }.filter { !$0.isUsed && !$0.exchange.isReflection }
      .map { $0.exchange.summary }
  }

  /// How many calls of server reflection there are.
  package var reflectionCount: Int {
    self.state.withLock { $0.tracks.count { $0?.exchange.isReflection == true } }
  }

  /// The asked calls that are missing, each with the nearest recorded call.
  public var missingCalls: [String] { self.state.withLock { $0.misses } }

  // MARK: Serving

  /// The calls that have ended, each with its place.
  var tracks: [(index: Int, track: Track)] {
    self.state.withLock { state in
      state.tracks.enumerated().compactMap { index, track in track.map { (index, $0) } }
    }
  }

  func isFree(_ index: Int) -> Bool { self.state.withLock { $0.tracks[index]?.isUsed == false } }

  /// Claims a recorded call for an asked call.
  ///
  /// - Returns: False if another call has claimed it.
  func claim(_ index: Int) -> Bool {
    self.state.withLock { state in
      guard state.tracks[index]?.isUsed == false else { return false }
      state.tracks[index]?.isUsed = true
      return true
    }
  }

  /// Gives a claimed call back, since it does not match after all.
  func release(_ index: Int) {
    self.state.withLock { $0.tracks[index]?.isUsed = false }
  }

  func addMiss(_ description: String) {
    // The first misses say enough.
    self.state.withLock { if $0.misses.count < 100 { $0.misses.append(description) } }
  }

  // MARK: Recording

  /// Adds a call that has ended. It is free to be asked.
  private func append(_ exchange: RecordedExchange, place: String) throws(CassetteError) {
    let script = try ExchangeScript(exchange, self.rules, place: place)
    let found = self.rules.paths(in: exchange)
    self.state.withLock { state in
      state.foundPaths.formUnion(found)
      state.tracks.append(Track(exchange: exchange, script: script, isUsed: false))
    }
  }

  /// Keeps a place for a call that begins.
  func beginRecording() -> Int {
    self.openCount.update { $0 += 1 }
    return self.state.withLock { state in
      state.size += Self.trackSize
      state.tracks.append(nil)
      return state.tracks.count - 1
    }
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
        state.tracks[index] = Track(exchange: exchange, script: script, isUsed: isUsed)
      }
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
