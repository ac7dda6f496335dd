import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The C structs that protoc-c makes, each in a handle that owns it. The module of the structs is one of the extra
/// imports.
struct ProtobufCMessages: MessageNaming {
  func typeName(of message: Descriptor) -> String {
    "ConnectProtobufC.CMessage<\(self.structName(message.fullName, in: message.file))>"
  }

  func modules(for message: Descriptor) -> [String] {
    ["ConnectProtobufC"]
  }

  func topLevelTypeNames(of file: FileDescriptor) -> [String] {
    (file.messages.map(\.fullName) + file.enums.map(\.fullName)).map { self.structName($0, in: file) }
  }

  func typePrefix(of file: FileDescriptor) -> String {
    let package = self.cPackage(of: file)
    return package.isEmpty ? "" : self.cName(package) + "__"
  }

  private func structName(_ fullName: String, in file: FileDescriptor) -> String {
    let relativeName = file.package.isEmpty ? fullName[...] : fullName.dropFirst(file.package.utf8.count + 1)
    return self.typePrefix(of: file) + self.cName(relativeName)
  }

  /// `foo_bar.v1.some_message` is `FooBar__V1__SomeMessage` in C.
  private func cName(_ protoName: some StringProtocol) -> String {
    protoName.split(separator: ".").map { part in
      part.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }
    .joined(separator: "__")
  }

  /// The file's package, or what the option `(pb_c_file).c_package` says in its place.
  private func cPackage(of file: FileDescriptor) -> String {
    let fileOptions = WireFields(file.options.unknownFields.data).lastBytes(of: 1019)
    let cPackage = fileOptions.flatMap { WireFields($0).lastBytes(of: 6) }
    return cPackage.map { String(decoding: $0, as: UTF8.self) } ?? file.package
  }
}
