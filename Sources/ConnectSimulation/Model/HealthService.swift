internal import Connect
internal import ConnectTesting
internal import SwiftProtobuf

/// The health service of a ``SimulatedServer`` (`grpc.health.v1.Health/Watch`).
///
/// `@unchecked Sendable`: touched on the simulation's executor alone.
final class HealthService: @unchecked Sendable {
  /// The wrapper types have the same bytes as `HealthCheckRequest` and `HealthCheckResponse`.
  static let watch = MethodSpec<Google_Protobuf_StringValue, Google_Protobuf_UInt32Value>(
    path: "/grpc.health.v1.Health/Watch",
    streamType: .serverStream
  )

  private weak var server: SimulatedServer?
  private var waiting: [Waiter] = []

  init(of server: SimulatedServer) {
    self.server = server
    server.memory.serve(
      ServerMethod(
        Self.watch,
        StreamForm.serverStream { [weak self] _, responses, _ in try await self?.answer(responses) }
      )
    )
  }

  private func answer(_ responses: ServerResponses<Google_Protobuf_UInt32Value>) async throws {
    var last: SimulatedServer.Health?
    while let server = self.server, await server.waitUntilThawed(), !Task.isCancelled {
      guard let health = server.health else {
        throw ConnectError(code: .unimplemented, message: "there is no health service")
      }
      // The numbers of `grpc.health.v1.HealthCheckResponse.ServingStatus`.
      if health != last { try await responses.send(.with { $0.value = health == .serving ? 1 : 2 }) }
      last = health
      guard server.health == health else { continue }
      let waiter = Waiter()
      self.waiting.append(waiter)
      if await !waiter.wait(cancellable: true) { self.waiting.removeAll { $0 === waiter } }
    }
  }

  /// The server's health has changed.
  func didChange() {
    let waiting = self.waiting
    self.waiting = []
    for waiter in waiting { waiter.resume(true) }
  }
}

extension SimulatedServer {
  /// What a server says of its health.
  public enum Health: Sendable, Hashable {
    /// The server takes calls (`SERVING`), or wants none (`NOT_SERVING`).
    case serving, notServing
  }
}
