public import NIOCore

/// The hooks of an interceptor around a unary call. Each is optional; one that is absent costs nothing.
///
/// Hooks run on the call's executor, one at a time, outside of any task. A hook may work asynchronously; the
/// call waits until it proceeds, up to the deadline. What it proceeds with before it returns goes on when it has returned.
public struct UnaryHooks<Message: Sendable, Response: Sendable> {
  public typealias RequestProceed = Proceed<RequestVerb<HTTPRequest<Message>, Response>>
  public typealias ResponseProceed = Proceed<ResponseVerb<HTTPRequest<Message>, Response>>

  /// Called with the request, in the order of the interceptors.
  public var requestFunction: ((HTTPRequest<Message>, RequestProceed) -> Void)?
  /// Called with the response or the error, in the reverse order. When the call's own deadline passes or it is
  /// cancelled, it is called with that error too, but what it proceeds with then is ignored.
  ///
  /// In byte hooks, HTTP status 304 is no error if the request had `if-none-match`. A hook answers it by
  /// proceeding with a message, or with a response of its own; else the call fails with `unknown`.
  public var responseFunction: ((Response, ResponseProceed) -> Void)?
  /// Called at the end of each attempt on the wire, in the reverse order; nothing waits for it. Byte hooks
  /// only.
  public var responseMetricsFunction: ((HTTPMetrics, Proceed<HTTPMetrics>) -> Void)?

  public init(
    requestFunction: ((HTTPRequest<Message>, RequestProceed) -> Void)? = nil,
    responseFunction: ((Response, ResponseProceed) -> Void)? = nil,
    responseMetricsFunction: ((HTTPMetrics, Proceed<HTTPMetrics>) -> Void)? = nil
  ) {
    self.requestFunction = requestFunction
    self.responseFunction = responseFunction
    self.responseMetricsFunction = responseMetricsFunction
  }

  var isEmpty: Bool {
    self.requestFunction == nil && self.responseFunction == nil && self.responseMetricsFunction == nil
  }
}

/// Byte hooks of unary calls: they see the HTTP request and the encoded message.
public typealias UnaryFunction = UnaryHooks<ByteBuffer, HTTPResponse>

/// Message hooks of unary calls: they see the method's own types, before encoding and after decoding.
public typealias UnaryMessageFunction<Input: Sendable, Output: Sendable> =
  UnaryHooks<Input, ResponseMessage<Output>>
