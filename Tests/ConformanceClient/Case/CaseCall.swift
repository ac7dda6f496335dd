internal import ConformanceMessages
internal import Connect
internal import SwiftProtobuf

/// One call of the runner's: what it sends, when, and when it is cancelled.
struct CaseCall: Sendable {
  let client: ProtocolClient
  let request: CompatRequest
  let usesCallbacks: Bool
  let cancelTiming: CancelTiming
  let callOptions: CallOptions
  let invariants: Invariants

  init(client: ProtocolClient, request: CompatRequest, usesCallbacks: Bool, _ invariants: Invariants) {
    self.client = client
    self.request = request
    self.usesCallbacks = usesCallbacks
    self.cancelTiming = CancelTiming(request)
    var options = CallOptions(headers: Headers(request.requestHeaders))
    if request.hasTimeoutMs { options.timeout = .milliseconds(Int(request.timeoutMs)) }
    self.callOptions = options
    self.invariants = invariants
  }

  /// The request's messages, as the method's type.
  func messages<Input: SwiftProtobuf.Message>(_ type: Input.Type = Input.self) throws -> [Input] {
    try self.request.requestMessages.map { try Input(unpackingAny: $0) }
  }

  /// The request's only message.
  func message<Input: SwiftProtobuf.Message>(_ type: Input.Type = Input.self) throws -> Input {
    let messages = try self.messages(type)
    guard let message = messages.first, messages.count == 1 else {
      throw CaseFailure("\(messages.count) request messages where exactly one belongs")
    }
    return message
  }

  /// Waits as long as the runner wants before each message of a stream.
  func waitBeforeMessage() async throws {
    guard self.request.requestDelayMs > 0 else { return }
    try await Task.sleep(for: .milliseconds(Int(self.request.requestDelayMs)))
  }

  /// Cancels in the background when it is time to, for calls that are made in one step.
  ///
  /// - Returns: The task that waits; nil if nothing is to be cancelled.
  func cancelAfterCloseSend(_ cancel: @escaping @Sendable () -> Void) -> Task<Void, Never>? {
    guard let delay = self.cancelTiming.delayAfterStart else { return nil }
    return Task {
      do {
        if delay > .zero { try await Task.sleep(for: delay) }
        cancel()
      } catch {
        // The call has ended before.
      }
    }
  }
}

extension Headers {
  init(_ headers: [Connectrpc_Conformance_V1_Header]) {
    self.init(headers.flatMap { header in header.value.map { Field(name: header.name, value: $0) } })
  }

  /// In the order of the names' first fields.
  var conformanceHeaders: [Connectrpc_Conformance_V1_Header] {
    var indexes: [String: Int] = [:]
    var headers: [Connectrpc_Conformance_V1_Header] = []
    for field in self {
      if let index = indexes[field.name] {
        headers[index].value.append(field.value)
      } else {
        indexes[field.name] = headers.count
        headers.append(
          .with {
            $0.name = field.name; $0.value = [field.value]
          }
        )
      }
    }
    return headers
  }
}
