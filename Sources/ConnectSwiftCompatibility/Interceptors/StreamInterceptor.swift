#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Sees and changes streams. A hook may get later values before it has proceeded with an earlier one; they go on in the order
/// of the wire.
public protocol StreamInterceptor: Interceptor {
  /// First: the stream's request, before any message. A failure ends the call.
  @Sendable
  func handleStreamStart(
    _ request: HTTPRequest<Void>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Void>, ConnectError>) -> Void
  )

  /// Each request message, behind ``handleStreamStart(_:proceed:)``.
  @Sendable
  func handleStreamInput<Message: ProtobufMessage>(
    _ input: Message,
    proceed: @escaping @Sendable (Message) -> Void
  )

  /// Each request message once it is encoded, not compressed and without an envelope.
  @Sendable
  func handleStreamRawInput(_ input: Data, proceed: @escaping @Sendable (Data) -> Void)

  /// The headers, each response message before it is decoded, and the end.
  @Sendable
  func handleStreamRawResult(
    _ result: StreamResult<Data>,
    proceed: @escaping @Sendable (StreamResult<Data>) -> Void
  )

  /// The headers, each response message, and the end, behind ``handleStreamRawResult(_:proceed:)``.
  @Sendable
  func handleStreamResult<Message: ProtobufMessage>(
    _ result: StreamResult<Message>,
    proceed: @escaping @Sendable (StreamResult<Message>) -> Void
  )
}

extension StreamInterceptor {
  /// Passes the request on.
  @Sendable
  public func handleStreamStart(
    _ request: HTTPRequest<Void>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Void>, ConnectError>) -> Void
  ) {
    proceed(.success(request))
  }

  /// Passes the message on.
  @Sendable
  public func handleStreamInput<Message: ProtobufMessage>(
    _ input: Message,
    proceed: @escaping @Sendable (Message) -> Void
  ) {
    proceed(input)
  }

  /// Passes the bytes on.
  @Sendable
  public func handleStreamRawInput(_ input: Data, proceed: @escaping @Sendable (Data) -> Void) {
    proceed(input)
  }

  /// Passes the result on.
  @Sendable
  public func handleStreamRawResult(
    _ result: StreamResult<Data>,
    proceed: @escaping @Sendable (StreamResult<Data>) -> Void
  ) {
    proceed(result)
  }

  /// Passes the result on.
  @Sendable
  public func handleStreamResult<Message: ProtobufMessage>(
    _ result: StreamResult<Message>,
    proceed: @escaping @Sendable (StreamResult<Message>) -> Void
  ) {
    proceed(result)
  }
}
