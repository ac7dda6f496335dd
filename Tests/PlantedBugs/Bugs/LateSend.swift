internal import Connect
internal import ConnectTesting
internal import NIOCore

/// Repeats a call that the server was too busy for, and signs it again.
///
/// The bug: nothing stops the wait when the caller cancels the call.
final class LateSend: Interceptor {
  private let clock: any Clock<Duration>
  private let sign: @Sendable () async throws -> String
  private var request: HTTPRequest<ByteBuffer>?
  private var attempts = 0

  init(clock: any Clock<Duration>, sign: @escaping @Sendable () async throws -> String) {
    self.clock = clock
    self.sign = sign
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.attempts += 1
        self.request = request
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        guard response.code == .unavailable, self.attempts < 3, let request = self.request else {
          return proceed(response)
        }
        Task { [clock = self.clock, sign = self.sign] in
          try? await clock.sleep(for: .seconds(2))
          guard let signature = try? await sign() else { return proceed(response) }
          var request = request
          request.headers["x-signature"] = [signature]
          proceed.retry(request)
        }
      }
    )
  }
}

extension ExplorationCase {
  static let lateSend = ExplorationCase(
    "LateSend",
    source: "Alamofire/Alamofire#2340",
    breaking: ["nothing after the end"],
    InterceptorExplorer { world in
      Subject { _ in
        LateSend(clock: world.clock) {
          try await world.step("signing service")
          return "signature"
        }
      }
    }
    .server(.answers(.ok, .unavailable))
  )
}
