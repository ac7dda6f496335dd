internal import Connect
internal import ConnectTesting
internal import NIOCore

/// Puts the size of the first message into the headers of the response.
///
/// The bug: a stream that has nothing to say for a while seems not to have begun.
final class HeldHeaders: Interceptor {
  private var release: ((Int) -> Void)?

  func streamFunction() -> StreamFunction {
    StreamFunction(streamResultFunction: { result, proceed in
      switch result {
      case .headers(var headers):
        self.release = { size in
          headers["x-first-size"] = ["\(size)"]
          proceed(.headers(headers))
        }
      case .message(let bytes):
        self.release?(bytes.readableBytes)
        self.release = nil
        proceed(result)
      case .complete:
        self.release?(0)
        self.release = nil
        proceed(result)
      }
    })
  }
}

extension ExplorationCase {
  static let heldHeaders = ExplorationCase(
    "HeldHeaders",
    source: "xmtp/xmtp-node-go#267",
    breaking: ["headers do not wait for messages"],
    InterceptorExplorer(of: { _ in HeldHeaders() })
      .methods([.serverStream, .bidirectionalStream])
      .neighbours(false)
      .check("headers do not wait for messages") { run in run.headersArriveAtOnce }
  )
}

extension ExplorationRun {
  /// Whether callers get headers when the server sends them. A call's deadline may pass while headers are on their way: these say
  /// nothing.
  var headersArriveAtOnce: Bool {
    self.calls.allSatisfy { call in
      guard let sent = call.attempts.first?.headersTime, let arrival = call.headersTime else { return true }
      return arrival == sent || arrival == call.deadline
    }
  }
}
