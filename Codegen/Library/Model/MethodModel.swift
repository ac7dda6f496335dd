import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// A method as the generators see it. All names are ready to be written.
package struct MethodModel {
  enum StreamType {
    case unary
    case clientStream
    case serverStream
    case bidirectionalStream
  }

  /// As in the proto file.
  let protoName: String
  /// The name of the functions and of the specification; in backticks if it is a keyword.
  let name: String
  /// The name of the mock's property for this method; in connect-swift's mocks it follows `mock` or `mockAsync`.
  let mockName: String
  /// The path of the method: `/package.Service/Method`.
  let path: String
  let streamType: StreamType
  let idempotencyLevel: Google_Protobuf_MethodOptions.IdempotencyLevel
  let input: String
  let output: String
  let isDeprecated: Bool
  let comments: Comments

  init(_ method: MethodDescriptor, name: String, mockName: String, _ messages: any MessageNaming) {
    self.protoName = method.name
    self.name = name.escapedIdentifier
    self.mockName = mockName
    self.path = "/\(method.service.fullName)/\(method.name)"
    self.streamType =
      switch (method.clientStreaming, method.serverStreaming) {
      case (false, false): .unary
      case (true, false): .clientStream
      case (false, true): .serverStream
      case (true, true): .bidirectionalStream
      }
    self.idempotencyLevel = method.options.idempotencyLevel
    self.input = messages.typeName(of: method.inputType)
    self.output = messages.typeName(of: method.outputType)
    self.isDeprecated = method.options.deprecated
    self.comments = Comments(method.sourceCodeInfoLocation)
  }
}
