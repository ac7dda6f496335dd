internal import Connect
internal import NIOCore

/// A call that is answered from a cassette: takes the client's bytes, and says which parts of the response are due, and when.
///
/// The messages of the request decide which recorded call answers. It is the first that was not asked before, that has the
/// same messages so far, and that has a part to serve after them. If a later message fits only another recorded call, the
/// session goes on with that call, provided that both serve the same parts so far. No I/O: events in, response parts out.
struct ReplaySession: Sendable {
  enum Step: Sendable {
    /// Nothing comes before the client has done more.
    case wait
    /// The next part is due this long after the previous one; ``take()`` returns it.
    case serve(after: Duration)
    /// The cassette does not have the call.
    case miss(ConnectError)
    case over
  }

  private let cassette: Cassette
  private var request: RequestReader
  private var asked: [Payload] = []
  private(set) var isFinished = false
  private var failure: ConnectError?

  /// The recorded calls that still match.
  private var candidates: [(index: Int, track: CassetteTracks.Track)]
  /// The chosen recorded call, and whether this session still holds it.
  private var claimed: (index: Int, script: ExchangeScript, isHeld: Bool)?
  /// The position in the claimed call, and the number of request messages before this position.
  private var position = 0
  private var sentCount = 0
  private(set) var servedCount = 0
  private var isOver = false

  init(_ cassette: Cassette, _ request: RequestReader) {
    self.cassette = cassette
    self.request = request
    self.candidates = cassette.tracks.ended.filter { _, track in
      track.exchange.path == request.path && track.exchange.wire == request.wire
        && track.exchange.headers["host"] == request.headers["host"]
    }
  }

  /// The version of HTTP over which the call went; nil if none is chosen yet, or if it had no connection.
  var version: HTTPConnectionInfo.Version? {
    guard let claimed = self.claimed else { return nil }
    return self.candidates.first { $0.index == claimed.index }?.track.exchange.version
  }

  // MARK: The client's side

  mutating func receive(_ bytes: ByteBuffer) {
    self.read { reader throws(CassetteError) in try reader.receive(bytes) }
  }

  mutating func finish() {
    guard !self.isFinished else { return }
    self.read { reader throws(CassetteError) in try reader.finish() }
    self.isFinished = true
    self.narrow()
  }

  private mutating func read(_ body: (inout RequestReader) throws(CassetteError) -> [Payload]) {
    guard self.failure == nil else { return }
    do throws(CassetteError) {
      for payload in try body(&self.request) {
        self.asked.append(payload)
        self.narrow()
      }
    } catch {
      self.failure = ConnectError(code: .failedPrecondition, message: "\(error)", exception: error)
    }
  }

  /// The client has cancelled. A recorded call that was cancelled, too, then counts as asked.
  mutating func cancel() {
    guard self.claimed == nil, !self.isOver else { return }
    self.isOver = true
    for (index, track) in self.candidates where track.exchange.parts.last?.event == .cancel {
      if self.cassette.tracks.claim(index) { return }
    }
  }

  // MARK: Which call it is

  /// Drops the candidates that the last message, or the request's end, does not fit.
  private mutating func narrow() {
    let (asked, isFinished) = (self.asked, self.isFinished)
    if let matching = self.cassette.rules.configuration.matching {
      let request = self.askedRequest
      self.candidates.removeAll { _, track in
        !matching(request, track.exchange.request(upTo: asked.count))
      }
      return
    }
    self.candidates.removeAll { _, track in
      let script = track.script
      if isFinished { return !script.endsEarly && script.messages.count != asked.count }
      let index = asked.count - 1
      // If the recorded response ended before the request, the request may have more messages.
      guard index < script.messages.count else { return !script.endsEarly }
      return script.messages[index] != asked[index]
    }
  }

  private var askedRequest: Cassette.Request {
    Cassette.Request(
      path: self.request.path,
      headers: self.request.headers,
      messages: self.asked.map(\.line)
    )
  }

  /// Chooses a recorded call, if the chosen one does not match any more.
  ///
  /// - Returns: Whether there is one.
  private mutating func choose() -> Bool {
    if let claimed = self.claimed {
      if claimed.isHeld, self.candidates.contains(where: { $0.index == claimed.index }) { return true }
      if claimed.isHeld { self.cassette.tracks.release(claimed.index) }
      self.claimed?.isHeld = false
    }
    var mayCome = false
    for (index, track) in self.candidates where self.cassette.tracks.isFree(index) {
      let script = track.script
      if let claimed = self.claimed, !script.serves(self.servedCount, as: claimed.script) { continue }
      mayCome = true
      guard self.isOpen(script), self.cassette.tracks.claim(index) else { continue }
      self.claimed = (index, script, true)
      self.moveBehindServedParts(script)
      return true
    }
    if !mayCome { self.failure = self.missError() }
    return false
  }

  /// Whether the client has done what comes before the first part.
  private func isOpen(_ script: ExchangeScript) -> Bool {
    self.isFinished || self.asked.count >= script.openingMessageCount && !script.opensWithFinish
  }

  private mutating func moveBehindServedParts(_ script: ExchangeScript) {
    self.position = 0
    self.sentCount = 0
    var rest = self.servedCount
    while rest > 0, self.position < script.steps.count {
      switch script.steps[self.position].step {
      case .send: self.sentCount += 1
      case .serve: rest -= 1
      case .finish, .silence: break
      }
      self.position += 1
    }
  }

  // MARK: The server's side

  mutating func next() -> Step {
    if self.isOver { return .over }
    if let failure = self.failure { return .miss(failure) }
    guard self.choose(), let script = self.claimed?.script else {
      return self.failure.map(Step.miss) ?? .wait
    }
    while self.position < script.steps.count {
      switch script.steps[self.position].step {
      case .send:
        guard self.sentCount < self.asked.count || self.isFinished else { return .wait }
        self.sentCount += 1
      case .finish:
        guard self.isFinished else { return .wait }
      case .serve:
        let time = script.steps[self.position].time
        let before = self.position > 0 ? script.steps[self.position - 1].time : 0
        return .serve(after: .milliseconds(max(0, time - before)))
      case .silence: return .wait
      }
      self.position += 1
    }
    return .wait
  }

  /// The part that ``next()`` has announced, if it still is the next one.
  mutating func take() -> ExchangeScript.ServedPart? {
    guard case .serve = self.next(), let script = self.claimed?.script,
      case .serve(let part) = script.steps[self.position].step
    else { return nil }
    self.position += 1
    self.servedCount += 1
    switch part {
    case .head, .body: break
    case .end, .fail: self.isOver = true
    }
    return part
  }

  // MARK: Misses

  private func missError() -> ConnectError {
    let tracks = self.cassette.tracks.ended.map(\.track).filter { $0.exchange.path == self.request.path }
    let asked = self.asked.map(\.description).joined(separator: "\n")
    var text = "the cassette has no answer to \(self.request.path) (\(self.request.wire))"
    let sameWire = tracks.filter { $0.exchange.wire == self.request.wire }
    let equal = sameWire.filter { $0.script.messages == self.asked }
    if tracks.isEmpty {
      text += ": it has no call of this method"
    } else if sameWire.isEmpty {
      let wires = Set(tracks.map(\.exchange.wire)).sorted().joined(separator: ", ")
      text += ": it has calls of this method over \(wires) alone"
    } else if !equal.isEmpty, equal.allSatisfy(\.isUsed) {
      text += ": it has this call \(equal.count) times, and all were asked before"
    }
    let shown = asked.utf8.count > 4000 ? String(asked.prefix(4000)) + "…" : asked
    text += "\nasked:\n\(shown)"
    if equal.isEmpty, let nearest = self.nearest(to: asked, in: sameWire) {
      text += "\nthe nearest that was recorded (- recorded, + asked):\n\(nearest)"
    }
    let next = self.cassette.unusedCalls
    text += next.isEmpty ? "\nall recorded calls were asked before" : "\nrecorded and not asked yet:"
    for call in next.prefix(3) { text += "\n- \(call.prefix(200))" }
    if next.count > 3 { text += "\n- and \(next.count - 3) more" }
    text += "\n\(self.cassette.rules.configuration.advice)"
    return ConnectError(code: .failedPrecondition, message: text)
  }

  private func nearest(to asked: String, in tracks: [CassetteTracks.Track]) -> String? {
    let differences = tracks.prefix(50).map { track in
      LineDiff.describe(
        expected: track.script.messages.map(\.description).joined(separator: "\n"),
        actual: asked
      )
    }
    return differences.min { one, two in Self.changes(in: one) < Self.changes(in: two) }
      .map { String($0.prefix(4000)) }
  }

  private static func changes(in difference: String) -> Int {
    difference.split(separator: "\n").count { !$0.hasPrefix("  ") }
  }
}
