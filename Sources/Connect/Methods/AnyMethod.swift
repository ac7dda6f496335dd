public import NIOCore

/// A method whose message types only its closures know. The closures are made with the ``MethodSpec``, where the
/// compiler often knows the types and specializes the closures for them.
@usableFromInline
package final class AnyMethod: Sendable {
  @usableFromInline typealias Encode =
    @Sendable (_ message: any AnyMessage, _ codec: any Codec, _ deterministic: Bool) throws -> ByteBuffer
  @usableFromInline typealias Decode =
    @Sendable (_ bytes: ByteBuffer, _ codec: any Codec) throws -> any AnyMessage
  @usableFromInline typealias Accept = @Sendable (_ visitor: any MethodVisitor, _ method: AnyMethod) -> Void

  package let info: MethodInfo
  private let encoder: Encode
  private let decoder: Decode
  private let acceptance: Accept

  @usableFromInline
  init(info: MethodInfo, encode: @escaping Encode, decode: @escaping Decode, accept: @escaping Accept) {
    self.info = info
    self.encoder = encode
    self.decoder = decode
    self.acceptance = accept
  }

  /// Encodes a message of the method's input.
  func encode(
    _ message: any AnyMessage,
    with codec: any Codec,
    deterministic: Bool
  ) throws(ConnectError) -> ByteBuffer {
    do {
      return try self.encoder(message, codec, deterministic)
    } catch {
      throw self.failure(error, "the request of \(self.info.path) could not be encoded")
    }
  }

  /// Decodes a message of the method's output.
  func decode(_ bytes: ByteBuffer, with codec: any Codec) throws(ConnectError) -> any AnyMessage {
    do {
      return try self.decoder(bytes, codec)
    } catch {
      throw self.failure(error, "the response of \(self.info.path) could not be decoded")
    }
  }

  private func failure(_ error: any Error, _ what: String) -> ConnectError {
    error as? ConnectError
      ?? ConnectError(code: .internalError, message: "\(what): \(error)", exception: error)
  }

  /// Calls the visitor with the method and its types.
  func accept(_ visitor: any MethodVisitor) {
    self.acceptance(visitor, self)
  }
}

/// Receives a method with its types.
@usableFromInline
protocol MethodVisitor {
  func visit<Input: Sendable, Output: Sendable>(_ method: MethodSpec<Input, Output>)
}
