import Connect
import ConnectInterceptors

/// Where the time of a call went, as a bar chart: each attempt with its phases, one below the other, on one scale.
struct CallTimeline {
  /// A line of the chart, or a line of text.
  struct Row: Equatable {
    enum Kind { case heading, phase, failure, note }

    var kind: Kind
    var text: String
  }

  /// With up to this many messages, each has a row; more share one.
  private static let maximumMessageRows = 5
  private static let labelWidth = 22
  private static let timesWidth = 24
  private static let minimumChartWidth = 10

  let explanation: CallExplanation
  /// In columns of the terminal.
  let width: Int

  private var chartWidth: Int { max(self.width - Self.labelWidth - Self.timesWidth, Self.minimumChartWidth) }

  var rows: [Row] {
    let call = self.explanation
    let code = call.code?.name ?? "not over"
    var rows = [
      Row(
        kind: .heading,
        text: "\(call.method) at \(call.server): \(code) after \(call.duration.milliseconds)"
      ),
      Row(
        kind: .note,
        text: "  encoding \(call.encoding.milliseconds), decoding \(call.decoding.milliseconds)"
      ),
    ]
    guard !call.attempts.isEmpty else {
      rows.append(Row(kind: .note, text: "  nothing went to the network"))
      return rows
    }
    rows.append(
      Row(
        kind: .note,
        text: String(repeating: " ", count: Self.labelWidth + self.chartWidth)
          + "at".padded(12, left: true) + "for".padded(12, left: true)
      )
    )
    for (index, attempt) in call.attempts.enumerated() {
      rows += self.rows(attempt, number: index + 1)
      for other in attempt.otherExchanges.sorted(by: { $0.start < $1.start }) {
        rows.append(Row(kind: .heading, text: Self.heading("  beside it", other.start, nil, other.metrics)))
        rows += self.phases(other.metrics, start: other.start, isDecisive: false)
      }
    }
    return rows
  }

  // MARK: Attempts

  private func rows(_ attempt: CallExplanation.Attempt, number: Int) -> [Row] {
    let code = attempt.code?.name ?? "given up"
    let start = attempt.exchangeStart
    var rows = [
      Row(kind: .heading, text: Self.heading("attempt \(number)", start, code, attempt.metrics))
    ]
    guard let metrics = attempt.metrics else {
      let end = max(self.explanation.duration, start)
      return rows + [self.bar("not known", .waiting, from: start, to: end)]
    }
    rows += self.phases(metrics, start: start, attempt: attempt, isDecisive: true)
    let encoding = metrics.requestEncoding.map { " in \($0)" } ?? ""
    let decoding = metrics.responseEncoding.map { " in \($0)" } ?? ""
    guard metrics.connection != nil else { return rows }
    rows.append(
      Row(
        kind: .note,
        text:
          "  sent \(metrics.requestBodyBytes) bytes for \(attempt.requestMessageBytes) of messages\(encoding), "
          + "received \(metrics.responseBodyBytes) for \(attempt.responseMessageBytes)\(decoding)"
      )
    )
    return rows
  }

  private static func heading(_ name: String, _ start: Duration, _ code: String?, _ metrics: HTTPMetrics?)
    -> String
  {
    var parts = code.map { [$0] } ?? []
    if let connection = metrics?.connection {
      let peer = connection.remoteAddress.map { " to \($0)" } ?? ""
      parts.append("\(connection.version.rawValue)\(peer)")
      parts.append(connection.isReused ? "an open connection" : "a new connection")
    } else if metrics != nil {
      parts.append("no connection")
    }
    if let status = metrics?.httpStatus { parts.append("HTTP status \(status)") }
    return "\(name), after \(start.milliseconds): \(parts.joined(separator: ", "))"
  }

  /// - Parameters:
  ///   - start: When the exchange began, from the start of the call.
  ///   - attempt: The attempt whose messages are shown.
  private func phases(
    _ metrics: HTTPMetrics,
    start: Duration,
    attempt: CallExplanation.Attempt? = nil,
    isDecisive: Bool
  ) -> [Row] {
    let end = start + metrics.duration
    let code = attempt?.code
    let hasFailed = isDecisive && code != .ok
    let endName = hasFailed ? code?.name ?? "given up" : "end"
    guard let connected = metrics.timeToConnection.map({ start + $0 }) else {
      return [
        self.bar("no connection", .waiting, from: start, to: end),
        self.moment(endName, hasFailed ? "✗" : "●", at: end, isFailure: hasFailed),
      ]
    }
    // Where the times of messages count from.
    let asked = attempt?.start ?? start
    var rows = self.setup(metrics, start: start, connected: connected)
    let sent = max(connected, asked + (attempt?.requestMessages.last ?? .zero))
    if let messages = attempt?.requestMessages, messages.count > 1 {
      rows += self.messages(messages, "sent", start: asked, within: connected...max(end, connected))
    }
    rows.append(self.moment("request sent", "●", at: sent))
    if let head = metrics.timeToHeaders.map({ start + $0 }) {
      // A server may answer while requests are still being sent.
      rows.append(self.bar("first byte", .waiting, from: min(sent, head), to: head))
      if let messages = attempt?.responseMessages {
        rows += self.messages(messages, "message", start: asked, within: head...max(end, head))
      }
    } else {
      rows.append(self.bar("no response", .waiting, from: min(sent, end), to: end))
    }
    rows.append(self.moment(endName, hasFailed ? "✗" : "●", at: end, isFailure: hasFailed))
    return rows
  }

  /// The phases before the connection took the request. Phases that began before the call are shown from its start.
  private func setup(_ metrics: HTTPMetrics, start: Duration, connected: Duration) -> [Row] {
    var rows: [Row] = []
    let setup = metrics.connection?.setup
    var time = connected - (setup?.total ?? .zero)
    let queued = metrics.queueing ?? .zero
    if queued >= .microseconds(1) {
      rows.append(self.bar("queue", .waiting, from: start, to: start + queued))
    }
    guard let setup else { return rows }
    var phases: [(String, Duration)] = [("name", setup.nameResolution)]
    let isSocket = self.explanation.server.socketScheme != nil
    switch metrics.connection?.version {
    case .http3?: phases.append(("QUIC", setup.connecting + (setup.tls ?? .zero)))
    default: phases += [(isSocket ? "socket" : "TCP", setup.connecting), ("TLS", setup.tls ?? .zero)]
    }
    for (name, duration) in phases where duration > .zero {
      rows.append(self.bar(name, .working, from: time, to: time + duration))
      time += duration
    }
    return rows
  }

  /// - Parameter span: Limits the times, which are not measured in the exchange itself and may be a little early or late.
  private func messages(
    _ messages: CallExplanation.Messages,
    _ name: String,
    start: Duration,
    within span: ClosedRange<Duration>
  ) -> [Row] {
    let times = messages.times.map { (start + $0).clamped(to: span) }
    guard messages.count > Self.maximumMessageRows, let first = times.first, let last = messages.last else {
      return times.enumerated().map {
        self.moment(times.count == 1 ? name : "\(name) \($0 + 1)", "│", at: $1)
      }
    }
    var cells = self.emptyCells
    let final = (start + last).clamped(to: span)
    for time in times + [final] { cells[self.cell(of: time)] = "│" }
    if messages.count > times.count, let lastKept = times.last {
      // The times in between are not known.
      for cell in self.cell(of: lastKept)...max(self.cell(of: final), self.cell(of: lastKept)) {
        cells[cell] = "│"
      }
    }
    let label = name == "message" ? "\(messages.count) messages" : "\(messages.count) \(name)"
    return [self.row(label, cells, at: first, for: final - first)]
  }

  // MARK: Drawing

  private enum Bar: Character {
    case working = "━"
    case waiting = "┄"
  }

  private var emptyCells: [Character] { Array(repeating: " ", count: self.chartWidth) }

  /// The end of the chart, from the start of the call.
  private var span: Duration {
    let ends = self.explanation.attempts.flatMap { attempt in
      [attempt.start + (attempt.metrics?.duration ?? .zero)]
        + attempt.otherExchanges.map { $0.start + $0.metrics.duration }
    }
    return max(([self.explanation.duration] + ends).max() ?? .zero, .microseconds(1))
  }

  private func cell(of time: Duration) -> Int {
    let position = time / self.span * Double(self.chartWidth)
    return min(max(Int(position), 0), self.chartWidth - 1)
  }

  private func bar(_ label: String, _ bar: Bar, from start: Duration, to end: Duration) -> Row {
    let shown = max(start, .zero)
    var cells = self.emptyCells
    let first = self.cell(of: shown)
    let last = (end / self.span * Double(self.chartWidth)).rounded(.up)
    for cell in first..<max(min(Int(last), self.chartWidth), first + 1) { cells[cell] = bar.rawValue }
    return self.row(label, cells, at: shown, for: end - start)
  }

  private func moment(_ label: String, _ mark: Character, at time: Duration, isFailure: Bool = false) -> Row {
    var cells = self.emptyCells
    cells[self.cell(of: time)] = mark
    return self.row(label, cells, at: time, for: nil, kind: isFailure ? .failure : .phase)
  }

  private func row(
    _ label: String,
    _ cells: [Character],
    at time: Duration,
    for duration: Duration?,
    kind: Row.Kind = .phase
  ) -> Row {
    let end = duration.map { $0.milliseconds.padded(12, left: true) } ?? ""
    let text =
      "  \(label)".padded(Self.labelWidth) + String(cells) + time.milliseconds.padded(12, left: true) + end
    return Row(kind: kind, text: text)
  }
}

extension Duration {
  fileprivate func clamped(to span: ClosedRange<Duration>) -> Duration {
    min(max(self, span.lowerBound), span.upperBound)
  }
}
