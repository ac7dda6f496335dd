internal import Connect

/// The requests of a connection that sends early data, until the server has shown that it is there.
///
/// Requests of methods without side effects are sent at once: an attacker who copies the datagrams can have the server process
/// them again (RFC 8446, section 8). All others are held back.
struct EarlyRequests {
  /// All that were started, in order. The number is bounded by what the server allowed before.
  private(set) var all: [(request: HTTPStreamRequest, stream: HTTP3Stream)] = []
  /// Whether it is too late for early data.
  var isHandshakeComplete = false
  /// Whether the server has not taken early data. It may have shown another certificate then.
  var isRefused = false

  /// Those that are held back.
  var held: [HTTP3Stream] { self.all.lazy.map(\.stream).filter { $0.id < 0 && $0.handler != nil } }

  /// Takes note of a request. Returns whether it is held back, until ``HTTP3Layer/releaseEarly()``.
  mutating func holds(_ request: HTTPStreamRequest, _ stream: HTTP3Stream) -> Bool {
    self.all.append((request, stream))
    guard request.hasNoSideEffects, !self.isHandshakeComplete, case .complete = request.body else {
      return true
    }
    stream.request.isEarly = true
    return false
  }

  /// Takes a stream out whose request is held back. Returns whether it was held back.
  mutating func drop(_ stream: HTTP3Stream) -> Bool {
    guard stream.id < 0, let index = self.all.firstIndex(where: { $0.stream === stream }) else {
      return false
    }
    self.all.remove(at: index)
    stream.isClosed = true
    return true
  }
}
