import SwiftProtobufPluginLibrary

/// The structs that protoc-gen-swift makes, named by protoc-gen-swift's rules.
struct SwiftProtobufMessages: MessageNaming {
  private let namer: SwiftProtobufNamer

  init(file: FileDescriptor, mappings: ProtoFileToModuleMappings) {
    self.namer = SwiftProtobufNamer(currentFile: file, protoFileToModuleMappings: mappings)
  }

  func typeName(of message: Descriptor) -> String {
    self.namer.fullName(message: message)
  }

  func modules(for message: Descriptor) -> [String] {
    guard let module = self.namer.mappings.moduleName(forFile: message.file) else { return [] }
    return module == self.namer.targetModule ? [] : [module]
  }

  func topLevelTypeNames(of file: FileDescriptor) -> [String] {
    file.messages.map { self.namer.relativeName(message: $0) }
      + file.enums.map { self.namer.relativeName(enum: $0) }
  }

  func typePrefix(of file: FileDescriptor) -> String {
    self.namer.typePrefix(forFile: file)
  }
}
