internal import SwiftProtobuf

/// A named element of a proto file.
enum Declaration: Sendable {
  case message(Google_Protobuf_DescriptorProto)
  case enumeration(Google_Protobuf_EnumDescriptorProto)
  case service(Google_Protobuf_ServiceDescriptorProto)
  case `extension`(Google_Protobuf_FieldDescriptorProto)
  case field(Google_Protobuf_FieldDescriptorProto, of: Google_Protobuf_DescriptorProto)
  case method(Google_Protobuf_MethodDescriptorProto)
  case value(Google_Protobuf_EnumValueDescriptorProto)

  var descriptor: any SwiftProtobuf.Message {
    switch self {
    case .message(let descriptor): descriptor
    case .enumeration(let descriptor): descriptor
    case .service(let descriptor): descriptor
    case .extension(let descriptor), .field(let descriptor, _): descriptor
    case .method(let descriptor): descriptor
    case .value(let descriptor): descriptor
    }
  }
}

/// The location of a declaration.
struct DeclarationPlace: Sendable {
  let declaration: Declaration
  /// The number of the file.
  let file: Int
  /// The path in the file's descriptor, as in source info.
  let path: [Int32]
  /// The full name of the enclosing message or package.
  let scope: String
}
