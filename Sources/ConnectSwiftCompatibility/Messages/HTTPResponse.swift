public import Connect
internal import NIOCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A unary response as connect-swift's raw hooks see it: after the wire protocol was decoded, before the message is decoded.
public struct HTTPResponse: Sendable {
  private let native: Connect::HTTPResponse

  /// What is of the HTTP response and not of the call.
  public struct TracingInfo: Equatable, Sendable {
    /// The status of the HTTP response.
    public let httpStatus: Int

    /// - Parameter httpStatus: The status of the HTTP response.
    public init(httpStatus: Int) {
      self.httpStatus = httpStatus
    }
  }

  init(_ native: Connect::HTTPResponse) {
    self.native = native
  }

  /// A new response, to take the place of one that a hook received.
  ///
  /// - Parameters:
  ///   - code: Ignored if there is an `error`. Another code than `ok` without an error makes one.
  ///   - headers: The metadata in front of the message.
  ///   - message: The message's bytes; nil counts as an empty message.
  ///   - trailers: Metadata behind the message.
  ///   - error: Nil for a response that succeeded. An error of another type is converted to ``ConnectError``.
  ///   - tracingInfo: The HTTP status; nil if no response arrived.
  public init(
    code: Code,
    headers: Headers,
    message: Data?,
    trailers: Trailers,
    error: (any Swift.Error)?,
    tracingInfo: TracingInfo?
  ) {
    self.native = Connect::HTTPResponse(
      code: code,
      headers: Connect::Headers(headers),
      message: message.map { ByteBuffer(bytes: $0) } ?? ByteBuffer(),
      trailers: Connect::Headers(trailers),
      error: error.map { ConnectError($0).native },
      httpStatus: tracingInfo?.httpStatus
    )
  }

  /// That of the error; `ok` if there is none.
  public var code: Code { self.native.code }
  /// The metadata, names in lower case.
  public var headers: Headers { self.native.headers.dictionary }
  /// The message's bytes; nil if the call failed.
  public var message: Data? {
    self.native.error == nil ? Data(self.native.message.readableBytesView) : nil
  }
  /// Metadata behind the message, names in lower case.
  public var trailers: Trailers { self.native.trailers.dictionary }
  /// Nil for a response that succeeded, else a ``ConnectError``.
  public var error: (any Swift.Error)? { self.native.error.map { ConnectError($0) } }
  /// Nil if no response arrived.
  public var tracingInfo: TracingInfo? { self.native.httpStatus.map { TracingInfo(httpStatus: $0) } }

  /// The response in this library's type. A new one inherits what connect-swift's initializer does not take.
  ///
  /// - Parameter given: The response that the hook received.
  func native(inPlaceOf given: Connect::HTTPResponse) -> Connect::HTTPResponse {
    guard self.native.request == nil else { return self.native }
    var native = self.native
    native.request = given.request
    if native.httpHeaders.isEmpty { native.httpHeaders = given.httpHeaders }
    return native
  }
}
