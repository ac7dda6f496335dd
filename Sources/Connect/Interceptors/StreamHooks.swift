public import NIOCore

/// The hooks of an interceptor around a stream (client, server or bidirectional). Each is optional; one that
/// is absent costs nothing.
///
/// Hooks run on the call's executor, one at a time, outside of any task. Later values may reach a hook before it has
/// proceeded with an earlier one. Values go on in the order of the wire, whatever the order in which the hook proceeds.
/// If a hook proceeds before it returns, the value goes on when the hook has returned.
public struct StreamHooks<RequestMessage: Sendable, ResponseMessage: Sendable> {
  /// What the request hook calls to go on: with a request, an error, or an answer.
  public typealias RequestProceed = Proceed<
    RequestVerb<HTTPRequest<Void>, StreamAnswer<ResponseMessage>>
  >
  /// What the hook for request messages calls to go on: with a message or without.
  public typealias DataProceed = Proceed<StreamDataVerb<RequestMessage>>
  /// What the hook for results calls to go on: with a result, without, or with a new attempt.
  public typealias ResultProceed = Proceed<StreamResultVerb<ResponseMessage>>

  /// Called with the request's head, in the order of the interceptors, before any message.
  public var requestFunction: ((HTTPRequest<Void>, RequestProceed) -> Void)?
  /// Called with each request message, in the order of the interceptors.
  public var requestMessageFunction: ((RequestMessage, DataProceed) -> Void)?
  /// Called with the headers, each response message, and the end, in the reverse order.
  public var streamResultFunction: ((StreamResult<ResponseMessage>, ResultProceed) -> Void)?
  /// Called at the end of each attempt on the wire, in the reverse order; nothing waits for it. Byte hooks
  /// only.
  public var responseMetricsFunction: ((HTTPMetrics, Proceed<HTTPMetrics>) -> Void)?

  /// The hooks of one interceptor for one call; those that are nil are absent.
  @inlinable @inline(__always)
  public init(
    requestFunction: ((HTTPRequest<Void>, RequestProceed) -> Void)? = nil,
    requestMessageFunction: ((RequestMessage, DataProceed) -> Void)? = nil,
    streamResultFunction: ((StreamResult<ResponseMessage>, ResultProceed) -> Void)? = nil,
    responseMetricsFunction: ((HTTPMetrics, Proceed<HTTPMetrics>) -> Void)? = nil
  ) {
    self.requestFunction = requestFunction
    self.requestMessageFunction = requestMessageFunction
    self.streamResultFunction = streamResultFunction
    self.responseMetricsFunction = responseMetricsFunction
  }

  @inline(__always)
  var isEmpty: Bool {
    self.requestFunction == nil && self.requestMessageFunction == nil && self.streamResultFunction == nil
      && self.responseMetricsFunction == nil
  }
}

/// Byte hooks of streams: they see the HTTP request and encoded messages.
public typealias StreamFunction = StreamHooks<ByteBuffer, ByteBuffer>

/// Message hooks of streams: they see the method's own types, before encoding and after decoding.
public typealias StreamMessageFunction<Input: Sendable, Output: Sendable> = StreamHooks<Input, Output>

extension StreamHooks where RequestMessage == ByteBuffer, ResponseMessage == ByteBuffer {
  /// Byte hooks of streams. `requestDataFunction` is called with the bytes of each request message.
  public init(
    requestFunction: ((HTTPRequest<Void>, RequestProceed) -> Void)? = nil,
    requestDataFunction: ((ByteBuffer, DataProceed) -> Void)?,
    streamResultFunction: ((StreamResult<ByteBuffer>, ResultProceed) -> Void)? = nil,
    responseMetricsFunction: ((HTTPMetrics, Proceed<HTTPMetrics>) -> Void)? = nil
  ) {
    self.init(
      requestFunction: requestFunction,
      requestMessageFunction: requestDataFunction,
      streamResultFunction: streamResultFunction,
      responseMetricsFunction: responseMetricsFunction
    )
  }
}

/// A whole response stream, given by a hook in place of the network.
public struct StreamAnswer<Message: Sendable>: Sendable {
  /// The response's headers.
  public var headers: Headers
  /// The response's messages, in order. They are delivered before ``error``, if there is one.
  public var messages: [Message]
  /// Why the stream fails; nil for a stream that ends well.
  public var error: ConnectError?
  /// The response's trailers, delivered with the end.
  public var trailers: Headers

  /// A stream of known messages, which ends well unless there is an `error`.
  public init(
    headers: Headers = Headers(),
    messages: [Message],
    error: ConnectError? = nil,
    trailers: Headers = Headers()
  ) {
    self.headers = headers
    self.messages = messages
    self.error = error
    self.trailers = trailers
  }
}

extension StreamAnswer: ResultConvertible {
  /// The answer as the results of a stream.
  var results: [ResultPart] {
    [.headers(self.headers)] + self.messages.map { .message(MessageBox($0)) }
      + [.end(self.error, trailers: self.trailers)]
  }
}
