package import SwiftProtobufPluginLibrary

/// What the caller of protoc asked for, from `key=value` pairs.
package struct GeneratorOptions {
  /// Who may use the generated declarations.
  package enum Visibility: String, CaseIterable, Sendable {
    case `internal` = "Internal"
    case `package` = "Package"
    case `public` = "Public"
  }

  /// Where a file is generated, from the path of its proto file.
  package enum FileNaming: String, CaseIterable, Sendable {
    /// `a/b/c.proto` gives `a/b/c.connect.swift`.
    case fullPath = "FullPath"
    /// `a/b/c.proto` gives `a_b_c.connect.swift`.
    case pathToUnderscores = "PathToUnderscores"
    /// `a/b/c.proto` gives `c.connect.swift`.
    case dropPath = "DropPath"
  }

  /// The generator of the messages that the stubs send.
  package enum MessageFamily: String, CaseIterable, Sendable {
    /// The structs of protoc-gen-swift.
    case swiftProtobuf = "SwiftProtobuf"
    /// The C structs of protoc-c.
    case protobufC = "ProtobufC"
  }

  package var visibility = Visibility.internal
  package var fileNaming = FileNaming.fullPath
  package var generatesAsyncMethods = true
  package var generatesCallbackMethods = false
  package var keepsMethodCasing = false
  package var usesAccessLevelOnImports = false
  /// Whether a proto file without services also gives a file.
  package var generatesEmptyFiles = false
  package var messageFamily = MessageFamily.swiftProtobuf
  /// Whether stubs and mocks have the form of connect-swift's generators, with the types of
  /// `ConnectSwiftCompatibility`.
  package var followsConnectSwift = false
  /// The module of protoc-c's structs. If it is set, the stubs' files make these structs messages.
  package var structModuleName: String?
  /// More modules to import, in the order of the options.
  package var extraModuleImports: [String] = []
  /// The modules of messages from other proto files, and the name of the module SwiftProtobuf.
  package var moduleMappings = ProtoFileToModuleMappings()

  package init() {}
}
