internal import Connect
internal import NIOCore
internal import SwiftProtobuf

/// The files of `google/protobuf`, for sets that lack them.
enum WellKnownFiles {
  private static let files: [String: Google_Protobuf_FileDescriptorProto] = {
    guard let bytes = Base64.decode(descriptorSet.filter { $0 != "\n" }),
      let set = try? Google_Protobuf_FileDescriptorSet(serializedBytes: Array(bytes.readableBytesView))
    else { return [:] }
    return Dictionary(set.file.map { ($0.name, $0) }) { first, _ in first }
  }()

  /// - Parameter name: Such as `google/protobuf/any.proto`.
  static func file(named name: String) -> Google_Protobuf_FileDescriptorProto? { self.files[name] }
}
