internal import Connect
internal import ConnectInterceptors
internal import ConnectTesting
internal import InMemoryTracing
internal import Logging
internal import MetricsTestKit
internal import Synchronization

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
  static let contextInterceptor = ExplorationCase(["ContextInterceptor"], doing: []) { _ in
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
  }

  static let tracingInterceptor = ExplorationCase(["TracingInterceptor"], doing: ["spans end"]) { witness in
    InterceptorExplorer { _ in
      let tracer = InMemoryTracer()
      return Subject(observing: tracer) { TracingInterceptor(config: $0, tracer: tracer) }
    }
    .calls(2)
    .methods(.every)
    .server(.everyAnswer)
    .check("each span ends") { run in
      witness.saw("spans end", if: !run.subject.finishedSpans.isEmpty)
      return run.calls.contains { $0.endTime == nil } || run.subject.activeSpans.isEmpty
    }
  }

  static let metricsInterceptor = ExplorationCase(["MetricsInterceptor"], doing: []) { _ in
    InterceptorExplorer { world in
      let factory = TestMetrics()
      let metrics = CallMetrics(
        factory: factory,
        options: .init(families: [.openTelemetry, .grpc]),
        clock: world.clock
      )
      return Subject(observing: factory) { MetricsInterceptor(metrics, config: $0) }
    }
    .calls(2)
    .methods(.every)
    .server(.everyAnswer)
    .check("each call counts once") { run in
      let timers = run.subject.timers.filter { $0.label == "rpc.client.call.duration" }
      return run.countsEnds(timers.reduce(0) { $0 + $1.values.count })
    }
  }

  static let loggingInterceptor = ExplorationCase(["LoggingInterceptor"], doing: []) { _ in
    InterceptorExplorer { world in
      let ends = Counter()
      let log = CallLog(logger: QuietLogHandler.logger(ends), clock: world.clock)
      return Subject(observing: ends) { LoggingInterceptor(log, config: $0) }
    }
    .calls(2)
    .methods(.every)
    .server(.everyAnswer)
    .check("each call has its line") { run in run.countsEnds(run.subject.value) }
  }

  /// Interceptors of each form, with stopwatches around their hooks.
  static let callExplainer = ExplorationCase(
    ["CallExplainer", "RetryInterceptor", "CredentialsInterceptor"],
    doing: ["calls are explained", "a call is repeated", "tokens are shown"]
  ) { witness in
    let current = Mutex(CallExplainer())
    return InterceptorExplorer { world in
      let explainer = CallExplainer(clock: world.clock)
      current.withLock { $0 = explainer }
      let store = TokenStore { world.token() }
      let budget = RetryBudget()
      let policy = RetryPolicy(random: { 0.5 })
      return Subject(
        observing: explainer,
        interceptors: [
          { _ in RetryInterceptor(policy: policy, budget: budget) },
          { [credentials = Credentials.explored(in: world, store)] _ in CredentialsInterceptor(credentials) },
        ]
      )
    }
    .options { _, options in options = options.explained(by: current.withLock(\.self)) }
    .calls(2)
    .methods(.every)
    .idempotency(.idempotent)
    .server(.everyAnswer)
    .neighbours(false)
    .allowing(.failure, .backgroundWork)
    .check("explanations are true") { run in
      let explanations = run.subject.explanations
      witness.saw("calls are explained", if: explanations.contains { !$0.interceptors.isEmpty })
      witness.saw("a call is repeated", if: run.calls.contains { $0.hasWaitedForNextAttempt })
      witness.saw("tokens are shown", if: run.attempts.contains { $0.headers.contains("authorization") })
      // A call that is cancelled before its interceptors are made has no explanation.
      let explained = run.calls.filter { !$0.attempts.isEmpty && $0.endTime != nil }
      return explained.count <= explanations.count && explanations.count <= run.calls.count
        && Set(explained.map(\.code)).isSubset(of: explanations.map(\.code))
    }
  }

  static let httpStatusInterceptor = ExplorationCase(
    ["HTTPStatusInterceptor", "StatusServer"],
    doing: ["a status is refused"]
  ) { witness in
    InterceptorExplorer(of: [{ _ in HTTPStatusInterceptor() }, { _ in StatusServer() }])
      .calls(2)
      .server(.everyAnswer)
      .allowing(.failure)
      .check("no other status than 200 succeeds") { run in
        witness.saw(
          "a status is refused",
          if: run.calls.contains { $0.error?.httpStatus == StatusServer.status }
        )
        return run.calls.allSatisfy { $0.code != .ok }
      }
  }

  static let cookieInterceptor = ExplorationCase(
    ["CookieInterceptor", "CookieServer"],
    doing: ["cookies go back to the server", "calls before the first response have none"]
  ) { witness in
    InterceptorExplorer { _ in
      let jar = CookieJar(wallClock: WallClock { .seconds(1_000_000) })
      return Subject(interceptors: [{ _ in CookieInterceptor(jar) }, { _ in CookieServer() }])
    }
    .calls(2)
    .methods(.every)
    .server(.everyAnswer)
    .check("each cookie is sent once") { run in
      let cookies = run.attempts.map { $0.headers["cookie"] }
      witness.saw("cookies go back to the server", if: cookies.contains(["session=explored"]))
      witness.saw("calls before the first response have none", if: cookies.contains([]))
      return cookies.allSatisfy { $0.isEmpty || $0 == ["session=explored"] }
    }
  }

  static let wireTapInterceptor = ExplorationCase(
    ["WireTapInterceptor"],
    doing: ["the tap shows responses"]
  ) { witness in
    InterceptorExplorer(of: [])
      .transport { _, base in
        let tap = WireTap(records: { record in
          if case .responseHead = record.event { witness.saw("the tap shows responses") }
        })
        return WireHTTPClient(
          base,
          interceptors: [{ exchange in WireTapInterceptor(tap, exchange) }],
          authenticatesClient: false
        )
      }
      .calls(2)
      .methods(.every)
      .server(.everyAnswer)
  }

  static let requestSigner = ExplorationCase(["RequestSigner"], doing: ["a request waits for the key"]) {
    witness in
    InterceptorExplorer(of: [])
      .transport { world, base in
        let options = RequestSigner.Options(wallClock: WallClock { .seconds(1_000_000) + world.now })
        let signer: WireInterceptorFactory = { _ in
          RequestSigner(options: options) {
            try await world.step("key service", canFail: true)
            return RequestSigner.Key(id: "k1", secret: Array("secret".utf8))
          }
        }
        return WireHTTPClient(base, interceptors: [signer])
      }
      .calls(2)
      .methods(.every)
      .server(.everyAnswer)
      .check("requests are signed") { run in
        witness.saw(
          "a request waits for the key",
          if: run.calls.contains { call in call.attempts.contains { $0.time > call.startTime } }
        )
        return run.calls.allSatisfy { call in
          // Of streams, the signature is in a trailer, which the explorer does not show.
          call.attempts.allSatisfy {
            $0.headers.contains(call.method == .unary ? "x-signature" : "x-signature-key")
          }
        }
      }
  }
}
