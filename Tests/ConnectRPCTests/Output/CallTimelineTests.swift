import Connect
import ConnectInterceptors
import XCTest

@testable import connectrpc

final class CallTimelineTests: XCTestCase {
  /// A call of `milliseconds`, whose attempts are given.
  private func explanation(
    _ milliseconds: Int,
    _ code: Code?,
    _ attempts: [CallExplanation.Attempt]
  ) -> CallExplanation {
    var explanation = CallExplanation()
    explanation.method = "acme.v1.Users/Get"
    explanation.server = "http://acme.test"
    explanation.code = code
    explanation.duration = .milliseconds(milliseconds)
    explanation.attempts = attempts
    return explanation
  }

  private func attempt(
    _ code: Code?,
    after start: Int = 0,
    _ metrics: HTTPMetrics?
  ) -> CallExplanation.Attempt {
    var attempt = CallExplanation.Attempt(start: .milliseconds(start))
    attempt.code = code
    attempt.metrics = metrics
    attempt.requestMessages.note(at: .zero)
    return attempt
  }

  private func metrics(
    _ end: Int,
    connection: HTTPConnectionInfo?,
    connected: Int? = nil,
    headers: Int? = nil
  ) -> HTTPMetrics {
    HTTPMetrics(
      attempt: 1,
      duration: .milliseconds(end),
      timeToConnection: connected.map { .milliseconds($0) },
      timeToHeaders: headers.map { .milliseconds($0) },
      connection: connection,
      httpStatus: headers == nil ? nil : 200
    )
  }

  private func new(_ version: HTTPConnectionInfo.Version, tls: Int?) -> HTTPConnectionInfo {
    HTTPConnectionInfo(
      version: version,
      isReused: false,
      remoteAddress: "10.0.0.1:80",
      setup: .init(
        nameResolution: .milliseconds(10),
        connecting: .milliseconds(10),
        tls: tls.map { .milliseconds($0) }
      )
    )
  }

  private func reused(_ version: HTTPConnectionInfo.Version) -> HTTPConnectionInfo {
    HTTPConnectionInfo(version: version, isReused: true)
  }

  /// Label, chart and times of the rows that have them.
  private func charts(_ explanation: CallExplanation) -> [[String]] {
    let rows = CallTimeline(explanation: explanation, width: 86).rows
    return rows.filter { $0.kind == .phase || $0.kind == .failure }.map { row in
      let (label, rest) = (row.text.prefix(22), row.text.dropFirst(22))
      return [label, rest.prefix(40), rest.dropFirst(40).prefix(12), rest.dropFirst(52)].map {
        $0.trimmingCharacters(in: .whitespaces)
      }
    }
  }

  private func bar(_ count: Int, _ character: Character = "━") -> String {
    String(repeating: character, count: count)
  }

  func testANewConnection() {
    var attempt = self.attempt(
      .ok,
      self.metrics(100, connection: self.new(.http2, tls: 20), connected: 50, headers: 90)
    )
    attempt.responseMessages.note(at: .milliseconds(95))
    XCTAssertEqual(
      self.charts(self.explanation(100, .ok, [attempt])),
      [
        ["queue", self.bar(4, "┄"), "0.000 ms", "10.000 ms"],
        ["name", self.bar(4), "10.000 ms", "10.000 ms"],
        ["TCP", self.bar(4), "20.000 ms", "10.000 ms"],
        ["TLS", self.bar(8), "30.000 ms", "20.000 ms"],
        ["request sent", "●", "50.000 ms", ""],
        ["first byte", self.bar(16, "┄"), "50.000 ms", "40.000 ms"],
        ["message", "│", "95.000 ms", ""],
        ["end", "●", "100.000 ms", ""],
      ]
    )
  }

  /// Bars stand where their times are.
  func testColumns() {
    let attempt = self.attempt(
      .ok,
      self.metrics(100, connection: self.new(.http1, tls: nil), connected: 50, headers: 75)
    )
    let rows = CallTimeline(explanation: self.explanation(100, .ok, [attempt]), width: 86).rows
    let tcp = rows.first { $0.text.contains("TCP") }?.text
    XCTAssertEqual(
      tcp,
      "  TCP                 \(self.bar(16, " "))\(self.bar(4))\(self.bar(20, " "))   40.000 ms   10.000 ms"
    )
    for row in rows where row.kind == .phase { XCTAssertLessThanOrEqual(row.text.count, 86) }
    let narrow = CallTimeline(explanation: self.explanation(100, .ok, [attempt]), width: 0).rows
    XCTAssertEqual(narrow.map(\.kind), rows.map(\.kind))
  }

  func testAConnectionInUse() {
    let attempt = self.attempt(
      .ok,
      self.metrics(10, connection: self.reused(.http2), connected: 0, headers: 10)
    )
    XCTAssertEqual(
      self.charts(self.explanation(10, .ok, [attempt])).map { $0[0] },
      ["request sent", "first byte", "end"]
    )
    let rows = CallTimeline(explanation: self.explanation(10, .ok, [attempt]), width: 86).rows
    XCTAssertTrue(rows.contains { $0.text.contains("an open connection") })
  }

  func testQUICAndUnixSockets() {
    let metrics = self.metrics(100, connection: self.new(.http3, tls: 20), connected: 40, headers: 90)
    let charts = self.charts(self.explanation(100, .ok, [self.attempt(.ok, metrics)]))
    XCTAssertEqual(charts.map { $0[0] }, ["name", "QUIC", "request sent", "first byte", "end"])
    XCTAssertEqual(charts[1], ["QUIC", self.bar(12), "10.000 ms", "30.000 ms"])
    var unix = self.explanation(
      100,
      .ok,
      [
        self.attempt(
          .ok,
          self.metrics(100, connection: self.new(.http1, tls: nil), connected: 20, headers: 90)
        )
      ]
    )
    unix.server = "unix:/run/acme.sock"
    XCTAssertEqual(self.charts(unix).map { $0[0] }, ["name", "socket", "request sent", "first byte", "end"])
  }

  func testMessages() {
    var attempt = self.attempt(
      .ok,
      self.metrics(100, connection: self.reused(.http2), connected: 0, headers: 10)
    )
    for time in [20, 40, 60] { attempt.responseMessages.note(at: .milliseconds(time)) }
    attempt.requestMessages.note(at: .milliseconds(50))
    XCTAssertEqual(
      self.charts(self.explanation(100, .ok, [attempt])).map { [$0[0], $0[2]] },
      [
        ["sent 1", "0.000 ms"], ["sent 2", "50.000 ms"], ["request sent", "50.000 ms"],
        ["first byte", "10.000 ms"],
        ["message 1", "20.000 ms"], ["message 2", "40.000 ms"], ["message 3", "60.000 ms"],
        ["end", "100.000 ms"],
      ]
    )
    for time in 61...90 { attempt.responseMessages.note(at: .milliseconds(time)) }
    let many = self.charts(self.explanation(100, .ok, [attempt])).filter { $0[0].contains("messages") }
    XCTAssertEqual(
      many,
      [["33 messages", "│       │       │" + self.bar(12, "│"), "20.000 ms", "70.000 ms"]]
    )
  }

  /// Times are kept of the first hundred alone.
  func testVeryManyMessages() {
    var attempt = self.attempt(
      .ok,
      self.metrics(1_000, connection: self.reused(.http2), connected: 0, headers: 0)
    )
    for time in 0..<1_000 { attempt.responseMessages.note(at: .milliseconds(time)) }
    XCTAssertEqual(attempt.responseMessages.times.count, 100)
    let charts = self.charts(self.explanation(1_000, .ok, [attempt]))
    XCTAssertEqual(charts.first { $0[0] == "1000 messages" }?[1], self.bar(40, "│"))
  }

  func testWhereACallFailed() {
    let unreachable = self.attempt(.unavailable, self.metrics(100, connection: nil))
    XCTAssertEqual(
      self.charts(self.explanation(100, .unavailable, [unreachable])),
      [
        ["no connection", self.bar(40, "┄"), "0.000 ms", "100.000 ms"],
        ["unavailable", "✗", "100.000 ms", ""],
      ]
    )
    let late = self.attempt(
      .deadlineExceeded,
      self.metrics(100, connection: self.reused(.http2), connected: 0)
    )
    XCTAssertEqual(
      self.charts(self.explanation(100, .deadlineExceeded, [late])).map { $0[0] },
      ["request sent", "no response", "deadline_exceeded"]
    )
    let rows = CallTimeline(explanation: self.explanation(100, .deadlineExceeded, [late]), width: 86).rows
    XCTAssertEqual(rows.filter { $0.kind == .failure }.count, 1)
  }

  func testRetriesAndHedges() throws {
    let failed = self.attempt(
      .unavailable,
      self.metrics(20, connection: self.reused(.http2), connected: 0, headers: 20)
    )
    var second = self.attempt(
      .ok,
      after: 40,
      self.metrics(20, connection: self.reused(.http2), connected: 0, headers: 20)
    )
    second.exchangeStart = .milliseconds(80)
    second.otherExchanges = [
      .init(
        start: .milliseconds(40),
        metrics: self.metrics(60, connection: self.reused(.http2), connected: 0)
      )
    ]
    let explanation = self.explanation(100, .ok, [failed, second])
    let headings = CallTimeline(explanation: explanation, width: 86).rows.filter { $0.kind == .heading }.map(
      \.text
    )
    XCTAssertEqual(headings.count, 4)
    XCTAssertTrue(headings[1].hasPrefix("attempt 1, after 0.000 ms: unavailable"), headings[1])
    XCTAssertTrue(headings[2].hasPrefix("attempt 2, after 80.000 ms: ok"), headings[2])
    XCTAssertTrue(headings[3].hasPrefix("  beside it, after 40.000 ms"), headings[3])
    let marks = self.charts(explanation).map { [$0[0], $0[2]] }
    XCTAssertEqual(
      marks,
      [
        ["request sent", "0.000 ms"], ["first byte", "0.000 ms"], ["unavailable", "20.000 ms"],
        ["request sent", "80.000 ms"], ["first byte", "80.000 ms"], ["end", "100.000 ms"],
        ["request sent", "40.000 ms"], ["no response", "40.000 ms"], ["end", "100.000 ms"],
      ]
    )
  }

  /// What was measured a little after the end is shown at the end.
  func testAMessageBehindTheEnd() {
    var attempt = self.attempt(
      .ok,
      self.metrics(90, connection: self.reused(.http2), connected: 0, headers: 80)
    )
    attempt.responseMessages.note(at: .milliseconds(95))
    let charts = self.charts(self.explanation(100, .ok, [attempt]))
    XCTAssertEqual(charts.first { $0[0] == "message" }?[2], "90.000 ms")
  }

  func testAnAttemptOfUnknownCost() {
    let attempt = self.attempt(nil, after: 50, nil)
    XCTAssertEqual(
      self.charts(self.explanation(100, nil, [attempt])),
      [["not known", self.bar(20, "┄"), "50.000 ms", "50.000 ms"]]
    )
  }

  func testNothingWentToTheNetwork() {
    let rows = CallTimeline(explanation: self.explanation(1, .invalidArgument, []), width: 86).rows
    XCTAssertEqual(rows.last?.text, "  nothing went to the network")
  }
}
