package import Connect
internal import Synchronization

/// The headers and trailers of a response that is being made.
package final class ServerMetadata: Sendable {
  private struct State {
    var headers = Headers()
    var trailers = Headers()
    var areHeadersSent = false
  }

  private let state = Mutex(State())

  package init() {}

  package var headers: Headers {
    get { self.state.withLock { $0.headers } }
    set { self.state.withLock { $0.headers = newValue } }
  }

  package var trailers: Headers {
    get { self.state.withLock { $0.trailers } }
    set { self.state.withLock { $0.trailers = newValue } }
  }

  /// The headers, the first time that they are to be sent; nil from then on.
  func takeHeaders() -> Headers? {
    self.state.withLock { state in
      guard !state.areHeadersSent else { return nil }
      state.areHeadersSent = true
      return state.headers
    }
  }
}
