internal import ConformanceMessages
internal import Connect

/// Keeps what a stream brings. What a stream must never bring goes into the feedback, which fails the case.
struct StreamRecorder<Output: ConformanceResponse> {
  var result = ResponseResult()
  /// Whether the end has come.
  private(set) var isComplete = false
  private var hasHeaders = false

  mutating func record(_ item: StreamResult<Output>) {
    if self.isComplete { self.result.feedback.append("the stream went on after its end") }
    switch item {
    case .headers(let headers):
      if self.hasHeaders { self.result.feedback.append("the stream had headers twice") }
      if !self.result.payloads.isEmpty { self.result.feedback.append("headers came after a message") }
      self.hasHeaders = true
      self.result.responseHeaders = headers.conformanceHeaders
    case .message(let message):
      self.result.payloads.append(message.payload)
    case .complete(let code, let error, let trailers):
      self.isComplete = true
      if let error {
        self.result.record(error, code: code, trailers: trailers)
      } else {
        self.result.responseTrailers = trailers.conformanceHeaders
        if code != .ok { self.result.feedback.append("a stream without an error has the code \(code)") }
      }
    }
  }

  /// The stream's results are over.
  mutating func recordEndOfResults() {
    guard !self.isComplete else { return }
    self.isComplete = true
    self.result.feedback.append("the stream's results ended without telling how the call ended")
  }
}
