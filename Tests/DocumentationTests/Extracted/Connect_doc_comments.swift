// Extracted from the doc comments of Sources/Connect by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectLifecycle
import ConnectNIO
import ConnectProtobufC
import ConnectReflection
import ConnectSimulation
import ConnectTesting
import Logging
import NIOCore
import ServiceLifecycle
import XCTest

extension DocComments {
  private func HedgingPolicy_1() async throws {
    config.hedging = { method in
      method.name == "Search" ? HedgingPolicy(maximumAttempts: 3, delay: .milliseconds(20), budget: budget) : nil
    }
  }

  private func ClientSystem_1() async throws {
    try ClientSystem.bootstrap(interceptors: [{ MyInterceptor(config: $0) }])
  }

  private func InterceptorProvider_1() async throws {
    struct AuditProvider: InterceptorProvider {
      func interceptors<Input, Output>(
        for request: HTTPRequest<Input?>,
        of method: MethodSpec<Input, Output>
      ) -> MethodInterceptors {
        guard request.message is Order, request.headers.contains("x-audit") else { return [] }
        return [{ MyInterceptor(config: $0) }]
      }
    }
  }

  private func MethodInterceptors_1() async throws {
    config.methodInterceptors = { method in
      switch method.name {
      case "Login": .replacing([{ _ in LoginInterceptor() }])
      case "Upload": [{ _ in ProgressInterceptor() }]
      default: []
      }
    }
  }

  private func ProtocolClient_1() async throws {
    let client = ProtocolClient(
      httpClient: NIOHTTPClient(),
      config: ProtocolClientConfig(host: "https://demo.connectrpc.com")
    )
    let response = await client.unary(say, SayRequest.with { $0.sentence = "Hello" })
    _ = client
    _ = response
  }

  private func ProtocolClient_2() async throws {
    let response = try await withTaskExecutorPreference(client.taskExecutor) {
      try await client.unary(say, request).get()
    }
    _ = response
  }

  private func Streams_1() async throws {
    for try await message in client.serverStream(count, request).messages { print(message) }
  }

  private func CallContext_Current_1() async throws {
    try await CallContext.withValues { context in
      context.deadline = CallDeadline(in: .seconds(2))
    } operation: {
      try await answer(request)  // no call in it takes longer than what is left of the two seconds
    }
  }

  private func CallContext_1() async throws {
    enum TenantKey: CallContextKey { static let defaultValue = "" }

    var options = CallOptions()
    options.context[TenantKey.self] = "acme"
    _ = options
  }

  private func Headers_1() async throws {
    var headers: Headers = ["Authorization": ["Bearer \(token)"]]
    headers["x-request-id"] = ["42"]
    _ = headers
  }

  private func AsyncByteInterceptor_1() async throws {
    func interceptUnaryBytes(
      _ request: HTTPRequest<ByteBuffer>,
      method: MethodInfo,
      next: UnaryByteNext
    ) async throws -> HTTPResponse {
      var request = request
      request.headers["x-signature"] = [try await self.signer.sign(request.message)]
      return try await next(request)
    }
  }

  private func AsyncInterceptor_1() async throws {
    func interceptUnary<Input, Output>(
      _ request: HTTPRequest<Input>,
      method: MethodSpec<Input, Output>,
      next: UnaryNext<Input, Output>
    ) async throws -> ResponseMessage<Output> {
      var request = request
      request.headers["authorization"] = ["Bearer \(try await token())"]
      let response = try await next(request)
      if response.code == .unauthenticated { return try await next(request) }  // a retry
      return response
    }
  }

  private func AsyncInterceptor_2() async throws {
    func interceptStream<Input, Output>(
      _ request: StreamRequest<Input>,
      method: MethodSpec<Input, Output>,
      next: StreamNext<Input, Output>
    ) async throws -> StreamResponse<Output> {
      try await next(request).mapErrors { error in redacted(error) }
    }
  }

  private func CallFunction_1() async throws {
    func callFunction(_ method: MethodInfo) -> CallFunction {
      let start = ContinuousClock.now
      return CallFunction(
        requestFunction: { request in request.headers["x-client"] = ["example"] },
        outcomeFunction: { outcome in print("\(method.path): \(outcome.code) after \(ContinuousClock.now - start)") }
      )
    }
  }

  private func Proceed_1() async throws {
    func record(_ request: HTTPRequest<ByteBuffer>, of hooks: UnaryFunction) {
      hooks.requestFunction?(request, Proceed { verb in recorded.append(verb) })
    }
  }

  private func Proceed_2() async throws {
    _ = UnaryFunction(requestFunction: { request, proceed in
      proceed.task {
        let token = await fetchToken()
        self.token = token
        var request = request
        request.headers["authorization"] = ["Bearer \(token)"]
        proceed(.success(request))
      }
    })
  }

  private func RetryRequest_1() async throws {
    func interceptUnary<Input, Output>(
      _ request: HTTPRequest<Input>,
      method: MethodSpec<Input, Output>,
      next: UnaryNext<Input, Output>
    ) async throws -> ResponseMessage<Output> {
      let response = try await next(request)
      guard response.code == .aborted else { return response }
      throw RetryRequest(after: .milliseconds(10))
    }
  }

  private func StreamRequest_1() async throws {
    func interceptStream<Input, Output>(
      _ request: StreamRequest<Input>,
      method: MethodSpec<Input, Output>,
      next: StreamNext<Input, Output>
    ) async throws -> StreamResponse<Output> {
      try await next(request).recoverErrors { error in
        error.code == .unavailable ? try await next(request) : nil
      }
    }
  }

  private func UnaryHooks_1() async throws {
    _ = UnaryFunction(
      updateRequest: { request in request.headers["x-client"] = ["example"] },
      updateResponse: { response in
        // Of a method without side effects.
        response.code == .aborted ? .retry(after: .milliseconds(50)) : .proceed
      }
    )
  }

  private func UnaryHooks_2() async throws {
    func unaryFunction() -> UnaryFunction {
      UnaryFunction(updateRequest: { request in request.headers["x-hop"] = ["1"] }).placed(.userIndependent)
    }
  }

  private func MethodFormat_1() async throws {
    config.methodFormats = { method in
      method.service == "reports.v1.ReportService" ? MethodFormat(codec: JSONCodec()) : nil
    }
  }

  private func ResponseParser_1() async throws {
    options.responseParser = ResponseParser(for: Report.self) { response in
      guard response.httpHeaders.first("content-type")?.hasPrefix("text/csv") == true else { return nil }
      return try Report(csv: String(buffer: response.message))
    }
  }

  private func MethodSpec_1() async throws {
    let say = MethodSpec<SayRequest, SayResponse>(path: "/eliza.v1.ElizaService/Say", streamType: .unary)
    _ = say
  }
}
