import SwiftProtobufPluginLibrary

/// What the stubs have to know about the Swift types of messages. Families of messages differ in nothing else.
protocol MessageNaming {
  /// The type by which the file's stubs name `message`.
  func typeName(of message: Descriptor) -> String
  /// The modules that this type name needs.
  func modules(for message: Descriptor) -> [String]
  /// The types at the top level that `file`'s messages and enums become, without their modules.
  func topLevelTypeNames(of file: FileDescriptor) -> [String]
  /// What the names of the file's services begin with.
  func typePrefix(of file: FileDescriptor) -> String
}

extension GeneratorOptions {
  /// - Parameter visibleTypes: As for ``FileModel/init(_:visibleTypes:_:)``.
  func messages(for file: FileDescriptor, visibleTypes: Set<String> = []) -> any MessageNaming {
    switch self.messageFamily {
    case .swiftProtobuf: SwiftProtobufMessages(file: file, mappings: self.moduleMappings)
    case .protobufC: ProtobufCMessages(file: file, visibleTypes: visibleTypes, self)
    }
  }
}
