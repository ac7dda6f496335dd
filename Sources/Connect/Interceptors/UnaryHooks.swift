public import NIOCore

/// The hooks of an interceptor around a unary call. Each is optional; one that is absent costs nothing.
///
/// Hooks run on the call's executor, one at a time, outside of any task. A hook may work asynchronously; the call waits
/// until it proceeds, up to the deadline. If a hook proceeds before it returns, the value goes on when the hook has
/// returned.
public struct UnaryHooks<Message: Sendable, Response: Sendable> {
  /// What the request hook calls to go on: with a request, an error, or an answer.
  public typealias RequestProceed = Proceed<RequestVerb<HTTPRequest<Message>, Response>>
  /// What the response hook calls to go on: with a response, or with a new attempt.
  public typealias ResponseProceed = Proceed<ResponseVerb<HTTPRequest<Message>, Response>>

  /// A request hook in the synchronous form: it changes the request in place, or throws to fail the call.
  public typealias RequestUpdate = (inout HTTPRequest<Message>) throws -> Void
  /// A response hook in the synchronous form: it changes the response in place and returns how the call goes on.
  public typealias ResponseUpdate = (inout Response) -> ResponseDecision

  /// Called with the request, in the order of the interceptors.
  public var requestFunction: ((HTTPRequest<Message>, RequestProceed) -> Void)? {
    get { self.requestHook ?? self.requestUpdate.map(Self.function) }
    set {
      self.requestHook = newValue
      self.requestUpdate = nil
    }
  }

  /// Called with the response or the error, in the reverse order. It is also called with the error when the call is
  /// cancelled or its deadline passes; its action is ignored then.
  ///
  /// In byte hooks, HTTP status 304 is no error if the request had `if-none-match`. A hook answers it by proceeding
  /// with a message, or with another response; else the call fails with `unknown`.
  public var responseFunction: ((Response, ResponseProceed) -> Void)? {
    get { self.responseHook ?? self.responseUpdate.map(Self.function) }
    set {
      self.responseHook = newValue
      self.responseUpdate = nil
    }
  }

  /// Called at the end of each attempt on the wire, in the reverse order; nothing waits for it. Byte hooks
  /// only.
  public var responseMetricsFunction: ((HTTPMetrics, Proceed<HTTPMetrics>) -> Void)?

  /// Where these hooks stand among those of other interceptors. Byte hooks only.
  public var placement = HookPlacement.asListed

  /// At most one of a hook and its synchronous form is set.
  @usableFromInline var requestHook: ((HTTPRequest<Message>, RequestProceed) -> Void)?
  @usableFromInline var requestUpdate: RequestUpdate?
  @usableFromInline var responseHook: ((Response, ResponseProceed) -> Void)?
  @usableFromInline var responseUpdate: ResponseUpdate?

  /// The hooks of one interceptor for one call; those that are nil are absent.
  @inlinable
  @inline(__always)
  public init(
    requestFunction: ((HTTPRequest<Message>, RequestProceed) -> Void)? = nil,
    responseFunction: ((Response, ResponseProceed) -> Void)? = nil,
    responseMetricsFunction: ((HTTPMetrics, Proceed<HTTPMetrics>) -> Void)? = nil
  ) {
    self.requestHook = requestFunction
    self.responseHook = responseFunction
    self.responseMetricsFunction = responseMetricsFunction
  }

  /// Hooks in the synchronous form, for hooks that need not wait: shorter to write, and at less cost. They behave like
  /// hooks that proceed before they return.
  ///
  /// ```swift
  /// UnaryFunction(
  ///   updateRequest: { request in request.headers["x-client"] = ["example"] },
  ///   updateResponse: { response in
  ///     // Of a method without side effects.
  ///     response.code == .aborted ? .retry(after: .milliseconds(50)) : .proceed
  ///   }
  /// )
  /// ```
  ///
  /// - Parameters:
  ///   - updateRequest: May change the request. Whatever it throws fails the call, ``ConnectError`` as it is.
  ///   - updateResponse: May change the response, and says how the call goes on.
  ///   - responseMetricsFunction: See ``responseMetricsFunction``; nil for none. It has no synchronous form.
  @inlinable
  @inline(__always)
  public init(
    updateRequest: @escaping RequestUpdate,
    updateResponse: ResponseUpdate? = nil,
    responseMetricsFunction: ((HTTPMetrics, Proceed<HTTPMetrics>) -> Void)? = nil
  ) {
    self.requestUpdate = updateRequest
    self.responseUpdate = updateResponse
    self.responseMetricsFunction = responseMetricsFunction
  }

  /// A response hook in the synchronous form, and no request hook.
  ///
  /// - Parameter updateResponse: May change the response, and says how the call goes on.
  @inlinable
  @inline(__always)
  public init(updateResponse: @escaping ResponseUpdate) {
    self.responseUpdate = updateResponse
  }

  /// No hooks.
  @inlinable
  @inline(__always)
  public init() {}

  /// The same hooks with a ``placement``.
  ///
  /// ```swift
  /// func unaryFunction() -> UnaryFunction {
  ///   UnaryFunction(updateRequest: { request in request.headers["x-hop"] = ["1"] }).placed(.userIndependent)
  /// }
  /// ```
  @inlinable
  @inline(__always)
  public consuming func placed(_ placement: HookPlacement) -> Self {
    self.placement = placement
    return self
  }

  @inline(__always)
  var isEmpty: Bool {
    self.requestHook == nil && self.responseHook == nil && self.requestUpdate == nil
      && self.responseUpdate == nil
      && self.responseMetricsFunction == nil
  }

  private static func function(_ update: @escaping RequestUpdate) -> (HTTPRequest<Message>, RequestProceed) ->
    Void
  {
    { request, proceed in
      var request = request
      do {
        try update(&request)
        proceed(.success(request))
      } catch {
        proceed(.failure(ConnectError(error)))
      }
    }
  }

  private static func function(_ update: @escaping ResponseUpdate) -> (Response, ResponseProceed) -> Void {
    { response, proceed in
      var response = response
      switch update(&response) {
      case .proceed: proceed(response)
      case .retry(let delay): proceed.retry(after: delay)
      case .restart(let delay): proceed.retry(after: delay, from: .start)
      }
    }
  }
}

/// How a call goes on after a synchronous response hook.
public enum ResponseDecision: Sendable, Hashable {
  /// The response goes on outwards.
  case proceed
  /// Start a new attempt at the first hook of this level, with the request of the caller, after this delay.
  case retry(after: Duration)
  /// Start a new attempt at the first hook of the call, with the request of the caller, after this delay.
  case restart(after: Duration)
}

/// Byte hooks of unary calls: they see the HTTP request and the encoded message.
public typealias UnaryFunction = UnaryHooks<ByteBuffer, HTTPResponse>

/// Message hooks of unary calls: they see the method's own types, before encoding and after decoding.
public typealias UnaryMessageFunction<Input: Sendable, Output: Sendable> =
  UnaryHooks<Input, ResponseMessage<Output>>
