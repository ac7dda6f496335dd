internal import Connect
internal import ConnectChannels

/// A stream of load reports, as a call.
final class LoadReportCall: LoadReportStream {
  private let stream:
    StreamHandle<Envoy_Service_LoadStats_V3_LoadStatsRequest, Envoy_Service_LoadStats_V3_LoadStatsResponse>
  private let executor: any CallExecutor

  /// - Parameter handle: Called on `executor`.
  init(
    _ client: ProtocolClient,
    on executor: any CallExecutor,
    _ handle: @escaping @Sendable (LoadReporter.Event) -> Void
  ) {
    self.executor = executor
    self.stream = client.bidirectionalStream(
      Envoy_Service_LoadStats_V3_LoadReportingServiceClient.Methods.streamLoadStats,
      // Headers, and a response.
      demand: 2
    ) { result in
      switch result {
      case .headers: break
      case .message(let response): executor.execute { handle(.response(response)) }
      case .complete: executor.execute { handle(.end) }
      }
    }
  }

  func send(
    _ request: Envoy_Service_LoadStats_V3_LoadStatsRequest,
    completion: @escaping @Sendable () -> Void
  ) {
    let executor = self.executor
    self.stream.send(request) { _ in executor.execute(completion) }
  }

  func requestNext() { self.stream.request(1) }

  func cancel() { self.stream.cancel() }
}

/// A stream that could not begin.
final class EndedLoadReportCall: LoadReportStream {
  /// - Parameter handle: Called on `executor`, later.
  init(on executor: any CallExecutor, _ handle: @escaping @Sendable (LoadReporter.Event) -> Void) {
    executor.execute { handle(.end) }
  }

  func send(
    _ request: Envoy_Service_LoadStats_V3_LoadStatsRequest,
    completion: @escaping @Sendable () -> Void
  ) {}

  func requestNext() {}

  func cancel() {}
}
