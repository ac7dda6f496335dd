internal import Connect
internal import ConnectInterceptors
internal import ConnectTesting
internal import InMemoryTracing
internal import Logging
internal import MetricsTestKit

// Those that watch calls, and change nothing but the request's headers.

extension [StreamType] {
  static let every: [StreamType] = [.unary, .serverStream, .clientStream, .bidirectionalStream]
}

extension ExplorerServer {
  /// All that may happen to an attempt.
  static let everyAnswer = ExplorerServer.answers(
    .ok,
    .unavailable,
    .unauthenticated,
    .headersThenNothing,
    .messagesThenFailure(.internalError),
    .reset,
    .nothing
  )
}

extension ExplorationCase {
  static let contextInterceptor = ExplorationCase(
    "ContextInterceptor",
    InterceptorExplorer { world in
      let options = ContextInterceptor.Options(makeRequestID: { world.token() })
      return Subject { _ in ContextInterceptor(options: options) }
    }
    .calls(2)
    .methods(.every)
    .server(.everyAnswer)
    .check("an id for each call") { run in
      run.calls.allSatisfy { call in Set(call.attempts.map { $0.headers["x-request-id"] }).count <= 1 }
        && Set(run.attempts.compactMap { $0.headers.first("x-request-id") }).count
          == Set(run.attempts.map(\.call)).count
    }
  )

  static let tracingInterceptor = ExplorationCase(
    "TracingInterceptor",
    InterceptorExplorer { _ in
      let tracer = InMemoryTracer()
      return Subject(observing: tracer) { TracingInterceptor(config: $0, tracer: tracer) }
    }
    .calls(2)
    .methods(.every)
    .server(.everyAnswer)
    .check("each span ends") { run in
      run.calls.contains { $0.endTime == nil } || run.subject.activeSpans.isEmpty
    }
  )

  static let metricsInterceptor = ExplorationCase(
    "MetricsInterceptor",
    InterceptorExplorer { world in
      let metrics = CallMetrics(
        factory: TestMetrics(),
        options: .init(families: [.openTelemetry, .grpc]),
        clock: world.clock
      )
      return Subject { MetricsInterceptor(metrics, config: $0) }
    }
    .calls(2)
    .methods(.every)
    .server(.everyAnswer)
  )

  static let loggingInterceptor = ExplorationCase(
    "LoggingInterceptor",
    InterceptorExplorer { world in
      let log = CallLog(logger: QuietLogHandler.logger, clock: world.clock)
      return Subject { LoggingInterceptor(log, config: $0) }
    }
    .calls(2)
    .methods(.every)
    .server(.everyAnswer)
  )

  static let httpStatusInterceptor = ExplorationCase(
    "HTTPStatusInterceptor",
    InterceptorExplorer(of: { _ in HTTPStatusInterceptor() })
      .calls(2)
      .methods(.every)
      .server(.everyAnswer)
  )

  static let cookieInterceptor = ExplorationCase(
    "CookieInterceptor",
    InterceptorExplorer { _ in
      let jar = CookieJar(wallClock: WallClock { .seconds(1_000_000) })
      return Subject { _ in CookieInterceptor(jar) }
    }
    .calls(2)
    .methods(.every)
    .server(.everyAnswer)
  )
}
