package import Connect

/// Answers a unary call.
public typealias UnaryHandler<Input: Sendable, Output: Sendable> =
  @Sendable (_ request: Input, _ context: ServerContext) async throws -> Output

/// Answers one message with a stream, which ends when the function returns or throws.
public typealias ServerStreamHandler<Input: Sendable, Output: Sendable> =
  @Sendable (
    _ request: Input, _ responses: ServerResponses<Output>, _ context: ServerContext
  ) async throws -> Void

/// Answers a stream with one message.
public typealias ClientStreamHandler<Input: Sendable, Output: Sendable> =
  @Sendable (_ requests: ServerRequests<Input>, _ context: ServerContext) async throws -> Output

/// Answers a stream with a stream, which ends when the function returns or throws.
public typealias BidirectionalStreamHandler<Input: Sendable, Output: Sendable> =
  @Sendable (
    _ requests: ServerRequests<Input>, _ responses: ServerResponses<Output>, _ context: ServerContext
  ) async throws -> Void

/// A method of a server, for a call in any wire protocol. Methods of all stream types are served as bidirectional streams,
/// by ``StreamForm``.
package struct ServerMethod: Sendable {
  package let info: MethodInfo
  let serve: @Sendable (any WireCall) async throws -> Void

  package init<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ handler: @escaping BidirectionalStreamHandler<Input, Output>
  ) {
    self.info = method.info
    self.serve = { wire in
      let requests = ServerRequests<Input> {
        guard let bytes = try await wire.receive() else { return nil }
        do {
          return try wire.codec.decode(bytes, as: method.input)
        } catch {
          throw ConnectError(
            code: .invalidArgument,
            message: "message does not decode: \(error)",
            exception: error
          )
        }
      }
      let responses = ServerResponses<Output> { message in
        try await wire.send(try wire.codec.encode(message, as: method.output, deterministic: false))
      }
      try await handler(requests, responses, ServerContext(method: method.info, wire: wire))
    }
  }

  /// A method that fails each call.
  init(_ info: MethodInfo, failingWith error: ConnectError) {
    self.info = info
    self.serve = { _ in throw error }
  }
}

/// Converts handlers of all stream types into handlers of bidirectional streams.
package enum StreamForm {
  package static func unary<Input, Output>(
    _ handler: @escaping UnaryHandler<Input, Output>
  ) -> BidirectionalStreamHandler<Input, Output> {
    { requests, responses, context in
      try await responses.send(try await handler(try await requests.only(), context))
    }
  }

  package static func serverStream<Input, Output>(
    _ handler: @escaping ServerStreamHandler<Input, Output>
  ) -> BidirectionalStreamHandler<Input, Output> {
    { requests, responses, context in try await handler(try await requests.only(), responses, context) }
  }

  package static func clientStream<Input, Output>(
    _ handler: @escaping ClientStreamHandler<Input, Output>
  ) -> BidirectionalStreamHandler<Input, Output> {
    { requests, responses, context in try await responses.send(try await handler(requests, context)) }
  }
}
