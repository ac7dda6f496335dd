public import Connect
internal import NIOCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The error of a call in connect-swift's form: this library's error, with metadata as a dictionary and details as `Data`.
///
/// It is another type than `Connect::ConnectError`, which calls of this library's own stubs throw. ``native`` and
/// ``init(_:)`` convert without loss.
public struct ConnectError: Swift.Error, Sendable {
  /// The error itself, with what connect-swift does not have, such as the HTTP status.
  public let native: Connect::ConnectError

  /// The same error in connect-swift's form.
  public init(_ native: Connect::ConnectError) {
    self.native = native
  }

  /// Never `ok`, which becomes `unknown`.
  public var code: Code { self.native.code }
  /// An explanation for people.
  public var message: String? { self.native.message }
  /// The cause, where the client has found one.
  public var exception: (any Swift.Error)? { self.native.exception }
  /// Typed details that the server attached; see ``unpackedDetails()``.
  public var details: [Detail] { self.native.details.map { Detail($0) } }
  /// The response's headers and trailers, names in lower case.
  public var metadata: Headers { self.native.metadata.dictionary }

  /// - Parameters:
  ///   - code: `ok` becomes `unknown`.
  ///   - message: An explanation for people.
  ///   - exception: The cause, if there is one.
  ///   - details: Typed details.
  ///   - metadata: More about the error, names in any case.
  public init(
    code: Code,
    message: String?,
    exception: (any Swift.Error)?,
    details: [Detail],
    metadata: Headers
  ) {
    self.native = Connect::ConnectError(
      code: code,
      message: message,
      exception: exception,
      details: details.map(\.native),
      metadata: Connect::Headers(metadata)
    )
  }

  /// The details of one type, decoded. Details of other types, and bytes that do not decode, are left out.
  public func unpackedDetails<Output: ProtobufMessage>() -> [Output] {
    self.native.unpackedDetails(Output.self)
  }

  /// `error` in this form, whatever it is: `unknown` with `error` as the cause, if it is no error of a call.
  init(_ error: any Swift.Error) {
    self = error as? ConnectError ?? ConnectError(Connect::ConnectError(error))
  }

  /// A typed message that a server attached to an error.
  public struct Detail: Sendable {
    /// The fully qualified name of the message.
    public let type: String
    /// The message in protobuf's binary encoding; nil for bytes that were no base64.
    public let payload: Data?

    /// - Parameters:
    ///   - type: See ``type``.
    ///   - payload: Nil for an empty message.
    public init(type: String, payload: Data?) {
      self.type = type
      self.payload = payload
    }

    init(_ native: Connect::ConnectError.Detail) {
      self.init(type: native.type, payload: Data(native.value.readableBytesView))
    }

    var native: Connect::ConnectError.Detail {
      Connect::ConnectError.Detail(type: self.type, value: ByteBuffer(bytes: self.payload ?? Data()))
    }
  }
}

extension ConnectError: CustomStringConvertible, LocalizedError {
  /// Code and message, for example `not_found: no such user`.
  public var description: String { self.native.description }
  /// The same as the description, so that `localizedDescription` says it, too.
  public var errorDescription: String? { self.native.description }
}
