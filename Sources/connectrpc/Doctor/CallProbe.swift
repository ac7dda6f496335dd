import Connect
import ConnectChannels
import ConnectHTTP3
import ConnectNIO
import ConnectReflection
import NIOCore
import Synchronization

/// Makes calls that change nothing, and notes what comes with their responses.
struct CallProbe {
  let host: String
  /// The path of the method to call; nil for the health service.
  let method: String?
  let server: ServerOptions

  private func spec(_ streamType: StreamType) -> MethodSpec<ByteBuffer, ByteBuffer> {
    MethodSpec(
      info: MethodInfo(
        path: self.method ?? "/grpc.health.v1.Health/Check",
        streamType: streamType,
        idempotencyLevel: self.method == nil ? .noSideEffects : .unknown
      ),
      input: .bytes,
      output: .bytes
    )
  }

  /// What became of one call.
  struct Answer: Sendable {
    var error: ConnectError?
    /// The response of the health service.
    var health: HealthStatus?
    var contentType: String?
    /// What the response's messages are compressed with, as the server says.
    var encoding: String?
    /// What requests may be compressed with, as the server says.
    var acceptedEncodings: String?
    var status: Int?
    var version: HTTPConnectionInfo.Version?

    var reason: String {
      guard let error = self.error else { return "ok" }
      return error.message.map { "\(error.code.name): \(Failure.advising($0))" } ?? error.code.name
    }

    /// Whether a message of gRPC came with trailers; nil if that cannot be told.
    var hasTrailers: Bool? {
      guard self.contentType?.hasPrefix("application/grpc") == true,
        self.contentType?.hasPrefix("application/grpc-web") == false
      else { return nil }
      // Without a message, the status may have come in the headers.
      guard let error = self.error else { return true }
      return error.message?.contains("ended without a grpc-status") == true ? false : nil
    }
  }

  /// Calls the health service, or the given method, with an empty message.
  ///
  /// - Parameter compression: The request's compression, and the only one of the response; nil for an uncompressed request.
  /// - Throws: ``Failure`` of usage if the options do not allow the call.
  func ask(
    _ version: ServerOptions.HTTPVersion?,
    _ choice: ServerOptions.WireProtocol,
    compression: (any CompressionPool)? = nil
  ) async throws -> Answer {
    // An unknown field, which servers skip: an empty message would not be compressed.
    let request = compression == nil ? ByteBuffer() : ByteBuffer(bytes: [0x78, 0x00])
    let answer = try await self.listen(version, choice, compression) { client, options in
      let response = await client.unary(self.spec(.unary), request, options: options)
      let message = self.method == nil ? response.message : nil
      let health = message.flatMap { HealthMessages.status(decoding: Array($0.readableBytesView)) }
      return Answer(error: response.error, health: health)
    }
    // In Connect alone, streams differ from unary calls on the wire.
    guard self.method != nil, choice == .connect, answer.status == 415 else { return answer }
    let stream = try await self.listen(version, choice, compression) { client, options in
      let stream = client.bidirectionalStream(self.spec(.bidirectionalStream), options: options)
      try? await stream.send(request)
      stream.finish()
      return Answer(error: await stream.results.error)
    }
    return stream.contentType?.hasPrefix("application/connect+") == true ? stream : answer
  }

  /// Asks reflection which services there are.
  func askReflection(
    _ version: ServerOptions.HTTPVersion?,
    _ choice: ServerOptions.WireProtocol,
    compression: (any CompressionPool)? = nil
  ) async throws -> Answer {
    try await self.listen(version, choice, compression) { client, options in
      do {
        _ = try await ReflectionClient(client, options: options).serviceNames()
        return Answer()
      } catch {
        return Answer(error: ConnectError(error))
      }
    }
  }

  private func listen(
    _ version: ServerOptions.HTTPVersion?,
    _ choice: ServerOptions.WireProtocol,
    _ compression: (any CompressionPool)?,
    _ call: (ProtocolClient, CallOptions) async -> Answer
  ) async throws -> Answer {
    let server = self.server.probing(version, choice)
    let session = try Session(host: self.host, server)
    var config = server.clientConfig(for: self.host)
    if let compression {
      config.compression = Compression(
        requests: compression,
        minimumRequestBytes: 0,
        responses: [compression]
      )
    }
    let recorder = AnswerRecorder()
    config.interceptors = [{ _ in recorder }]
    let options = try server.callOptions()
    let end = await call(ProtocolClient(httpClient: session.httpClient, config: config), options)
    await session.httpClient.shutdown(within: .zero)
    var answer = recorder.answer
    answer.error = end.error
    answer.health = end.health
    if let error = answer.error, error.code == .invalidArgument, answer.status == nil, answer.version == nil {
      // Nothing was sent: the library refuses a header, for example.
      throw Failure.usage(Failure.advising(error.message ?? error.code.name))
    }
    return answer
  }
}

extension ServerOptions {
  /// The same options for one probe.
  func probing(_ version: HTTPVersion?, _ choice: WireProtocol) -> ServerOptions {
    var options = self
    options.httpVersion = version
    options.wireProtocol = choice
    options.timeout = self.timeout ?? TimeSpan(argument: "5s")
    return options
  }
}

/// Records the status, headers and connection of calls.
private final class AnswerRecorder: Interceptor, Sendable {
  private let recorded = Mutex(CallProbe.Answer())

  var answer: CallProbe.Answer { self.recorded.withLock { $0 } }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      updateRequest: { _ in },
      updateResponse: { response in
        self.recorded.withLock { $0.status = response.httpStatus }
        self.record(response.httpHeaders)
        return .proceed
      },
      responseMetricsFunction: self.record
    )
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      streamResultFunction: { result, proceed in
        if case .headers(let headers) = result { self.record(headers) }
        proceed(result)
      },
      responseMetricsFunction: self.record
    )
  }

  private func record(_ headers: Headers) {
    self.recorded.withLock { answer in
      answer.contentType = headers.first("content-type") ?? answer.contentType
      for name in ["grpc-encoding", "connect-content-encoding", "content-encoding"] {
        answer.encoding = headers.first(name) ?? answer.encoding
      }
      for name in ["grpc-accept-encoding", "connect-accept-encoding", "accept-encoding"] {
        answer.acceptedEncodings = headers.first(name) ?? answer.acceptedEncodings
      }
    }
  }

  private func record(_ metrics: HTTPMetrics, _ proceed: Proceed<HTTPMetrics>) {
    self.recorded.withLock { $0.version = metrics.connection?.version }
    proceed(metrics)
  }
}
