internal import Connect
internal import ConnectTesting
internal import NIOCore
internal import Synchronization

/// Calls that wait for the response of an equal call.
final class Flights: Sendable {
  typealias Waiter = CheckedContinuation<HTTPResponse?, Never>

  private let waiters = Mutex<[String: [Waiter]]>([:])

  /// Begins a flight, or waits for the one that goes on.
  ///
  /// - Returns: The response of the other call; nil if there is none.
  func join(_ key: String) async -> HTTPResponse? {
    await withCheckedContinuation { continuation in
      let isFirst = self.waiters.withLock { waiters in
        if waiters[key] == nil {
          waiters[key] = []
          return true
        }
        waiters[key]?.append(continuation)
        return false
      }
      if isFirst { continuation.resume(returning: nil) }
    }
  }

  func land(_ key: String, _ response: HTTPResponse?) {
    let waiters = self.waiters.withLock { $0.removeValue(forKey: key) } ?? []
    for waiter in waiters { waiter.resume(returning: response) }
  }
}

/// Sends equal requests that are under way at the same time once.
///
/// The bug: requests with different messages are taken for equal.
struct SharedFlight: AsyncUnaryByteInterceptor {
  let isMended: Bool
  let flights: Flights

  func interceptUnaryBytes(
    _ request: HTTPRequest<ByteBuffer>,
    method: MethodInfo,
    next: UnaryByteNext
  ) async throws -> HTTPResponse {
    let key = self.isMended ? "\(method.path) \(Array(request.message.readableBytesView))" : method.path
    if let response = await self.flights.join(key) { return response }
    do {
      let response = try await next(request)
      self.flights.land(key, response)
      return response
    } catch {
      self.flights.land(key, nil)
      throw error
    }
  }
}

extension ExplorationCase {
  static let sharedFlight = ExplorationCase(
    "SharedFlight",
    source: "afollestad/bridge#18",
    breaking: ["values stay in their call"]
  ) { isMended in
    InterceptorExplorer { _ in
      let flights = Flights()
      return Subject { _ in SharedFlight(isMended: isMended, flights: flights) }
    }
    .calls(2)
  }
}
