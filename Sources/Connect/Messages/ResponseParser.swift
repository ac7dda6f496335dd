internal import NIOCore

/// Makes the message of a response, or its error, from the HTTP status, the headers and the bytes.
///
/// ```swift
/// options.responseParser = ResponseParser(for: Report.self) { response in
///   guard response.httpHeaders.first("content-type")?.hasPrefix("text/csv") == true else { return nil }
///   return try Report(csv: String(buffer: response.message))
/// }
/// ```
///
/// A parser sees every unary response that has arrived whole, after byte hooks, whatever its status and content type, and
/// what hooks answer with. If the wire protocol finds an error in the response, such as another status than 200 or a foreign
/// content type, the parser sees this error in ``HTTPResponse/error`` and the body as it came, without its content encoding,
/// in ``HTTPResponse/message``. A response that broke off is an error without a parser. In a stream, the parser sees each
/// message of a response with status 200 and the protocol's content type.
///
/// A body that is larger than ``ProtocolClientConfig/Limits/maximumReceivedMessageSize`` fails the call with
/// `resource_exhausted`.
public struct ResponseParser: Sendable {
  /// An object, since most calls have none.
  private final class Body: Sendable {
    let parse: @Sendable (HTTPResponse) throws -> (any AnyMessage)?
    let output: any Sendable.Type

    init(_ output: any Sendable.Type, _ parse: @escaping @Sendable (HTTPResponse) throws -> (any AnyMessage)?)
    {
      self.output = output
      self.parse = parse
    }
  }

  private let body: Body

  /// A parser for methods that answer with `Output`. Calls of other methods fail with `internal`.
  ///
  /// - Parameters:
  ///   - output: The type of the response messages.
  ///   - parse: Returns the message, or nil for what the codec and the wire protocol make of the response. Whatever it
  ///     throws becomes the call's error: ``ConnectError`` as it is, any other error as the cause of an `internal` error. It
  ///     runs on the call's executor, where it must not block.
  public init<Output: Sendable>(
    for output: Output.Type,
    _ parse: @escaping @Sendable (HTTPResponse) throws -> Output?
  ) {
    self.body = Body(output) { try parse($0).map { MessageBox($0) } }
  }

  /// - Parameters:
  ///   - result: The response of a unary call, or a part of a stream's response.
  ///   - head: The head of a stream's response, if it came from the network.
  /// - Returns: The result with the message; nil for the default.
  func parse(
    _ result: ResultPart,
    _ head: @autoclosure () -> HTTPResponseHead?,
    of method: AnyMethod
  ) throws(ConnectError) -> ResultPart? {
    switch result {
    case .wholeBytes(let response):
      return self.parse(whole: response, of: method).map { .whole($0) }
    case .bytes(let bytes):
      return try self.parse(bytes, head(), of: method)
    case .message(let message):
      return try self.parse(MessageBox<ByteBuffer>.of(message).message, head(), of: method)
    case .whole, .headers, .end:
      return nil
    }
  }

  private func parse(whole response: HTTPResponse, of method: AnyMethod) -> AnyResponse? {
    guard response.error == nil || response.isParsed else { return nil }
    var response = response
    if let error = response.errorInPlaceOfMessage, response.error == nil { response.error = error }
    let outcome: AnyResponse.Outcome
    do throws(ConnectError) {
      guard let message = try self.parse(response, of: method) else { return nil }
      outcome = .message(message)
    } catch {
      var error = error
      if error.httpStatus == nil { error.httpStatus = response.httpStatus }
      outcome = .error(error)
    }
    return AnyResponse(outcome, headers: response.headers, trailers: response.trailers)
  }

  /// A message of a stream.
  private func parse(
    _ bytes: ByteBuffer,
    _ head: HTTPResponseHead?,
    of method: AnyMethod
  ) throws(ConnectError) -> ResultPart? {
    let headers = head?.headers ?? Headers()
    let response = HTTPResponse(
      headers: headers,
      message: bytes,
      httpStatus: head?.status,
      httpHeaders: headers
    )
    return try self.parse(response, of: method).map { .message($0) }
  }

  private func parse(_ response: HTTPResponse, of method: AnyMethod) throws(ConnectError) -> (any AnyMessage)?
  {
    let visitor = OutputVisitor()
    method.accept(visitor)
    guard visitor.isOutput(self.body.output) else { throw self.wrongType(method.info) }
    do {
      return try self.body.parse(response)
    } catch {
      throw error as? ConnectError
        ?? ConnectError(
          code: .internalError,
          message: "the response of \(method.info.path) could not be parsed: \(error)",
          exception: error
        )
    }
  }

  private func wrongType(_ method: MethodInfo) -> ConnectError {
    ConnectError(
      code: .internalError,
      message:
        "the response parser of \(method.path) gives \(self.body.output), which is not the method's output"
    )
  }
}

/// Compares a type with the output of a method.
private final class OutputVisitor: MethodVisitor {
  private var output: Any.Type?

  func isOutput(_ type: Any.Type) -> Bool { self.output == type }

  func visit<Input: Sendable, Output: Sendable>(_ method: MethodSpec<Input, Output>) {
    self.output = Output.self
  }
}
