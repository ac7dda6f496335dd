internal import Connect

/// Access logs: one JSON object a line.
struct AccessLogFormat {
  private let unit: Double
  private var lines = LineSplitter()
  /// How many calls wait to learn whether the log has statuses of gRPC.
  private static let mostHeld = 1_000
  /// Whether a call has had a status of gRPC.
  private var hasStatuses = false
  /// Calls without one, from before.
  private var held: [(call: TracedCall, line: Int)] = []

  /// - Parameter unit: The unit of durations that have none, in seconds.
  init(unit: Double) {
    self.unit = unit
  }

  mutating func read(_ bytes: [UInt8], _ builder: inout TraceBuilder) {
    // Taken out, so that lines may change the rest.
    var lines = self.lines
    lines.read(bytes) { self.read($0, &builder) }
    self.lines = lines
  }

  mutating func finish(_ builder: inout TraceBuilder) {
    var lines = self.lines
    lines.finish { self.read($0, &builder) }
    self.release(&builder)
  }

  private mutating func read(_ line: LineSplitter.Line, _ builder: inout TraceBuilder) {
    switch line {
    case .tooLong(let number):
      builder.mistake("the line is longer than \(LineSplitter.longestLine >> 20) MiB", line: number)
    case .text(let text, let number):
      do throws(JSONParser.Failure) {
        let entry = LogEntry(try JSONParser.parse(text), unit: self.unit)
        switch entry.call {
        case .success(let call): self.add(call, entry, line: number, &builder)
        case .failure(let problem) where problem.isOther: builder.other(problem.text, line: number)
        case .failure(let problem): builder.mistake(problem.text, line: number)
        }
      } catch {
        builder.mistake("no JSON: \(error.problem), column \(error.column)", line: number)
      }
    }
  }

  private mutating func add(
    _ call: TracedCall,
    _ entry: LogEntry,
    line: Int,
    _ builder: inout TraceBuilder
  ) {
    var call = call
    switch entry.status {
    case .rpc where !self.hasStatuses:
      self.hasStatuses = true
      self.release(&builder)
    case .http where call.code == .ok: call.doubts.insert(.httpStatus)
    case .empty where call.code == .ok:
      if !self.hasStatuses, self.held.count < Self.mostHeld { return self.held.append((call, line)) }
      call = self.judged(call)
    default: break
    }
    builder.add(call, line: line, isOrdered: true)
  }

  private mutating func release(_ builder: inout TraceBuilder) {
    for (call, line) in self.held { builder.add(self.judged(call), line: line, isOrdered: true) }
    self.held = []
  }

  /// A call of nginx without a status of gRPC. If others have one in their trailers, this one has it in its headers, as gRPC's failures
  /// without a message do.
  private func judged(_ call: TracedCall) -> TracedCall {
    var call = call
    call.doubts.insert(self.hasStatuses ? .emptyStatus : .httpStatus)
    if self.hasStatuses { call.code = .unknown }
    return call
  }
}
