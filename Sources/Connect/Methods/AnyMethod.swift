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
  /// Encodes a message of the method's input.
  let encode: Encode
  /// Decodes a message of the method's output.
  let decode: Decode
  private let acceptance: Accept

  @usableFromInline
  init(info: MethodInfo, encode: @escaping Encode, decode: @escaping Decode, accept: @escaping Accept) {
    self.info = info
    self.encode = encode
    self.decode = decode
    self.acceptance = accept
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
