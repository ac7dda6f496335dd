internal import ConformanceMessages
internal import Connect

/// Keeps what a stream brings, and reports what a stream must never bring.
struct StreamRecorder<Output: ConformanceResponse> {
  let invariants: Invariants
  var result = ResponseResult()
  /// Whether the end has come.
  private(set) var isComplete = false
  private var hasHeaders = false

  init(_ invariants: Invariants) {
    self.invariants = invariants
  }

  mutating func record(_ item: StreamResult<Output>) {
    if self.isComplete { self.invariants.report("the stream went on after its end") }
    switch item {
    case .headers(let headers):
      if self.hasHeaders { self.invariants.report("the stream had headers twice") }
      if !self.result.payloads.isEmpty { self.invariants.report("headers came after a message") }
      self.hasHeaders = true
      self.result.responseHeaders = headers.conformanceHeaders
    case .message(let message):
      if !self.hasHeaders { self.invariants.report("a message came before the headers") }
      self.result.payloads.append(message.payload)
    case .complete(let code, let error, let trailers):
      self.isComplete = true
      if let error {
        self.result.record(error, code: code, trailers: trailers, self.invariants)
      } else {
        self.result.responseTrailers = trailers.conformanceHeaders
        if code != .ok { self.invariants.report("a stream without an error has the code \(code)") }
      }
    }
  }

  /// The stream's results are over.
  mutating func recordEndOfResults() {
    guard !self.isComplete else { return }
    self.isComplete = true
    self.invariants.report("the stream's results ended without telling how the call ended")
  }
}
