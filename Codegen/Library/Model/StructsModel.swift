import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The C structs of one proto file as the generators see them. All names are ready to be written.
struct StructsModel {
  struct Struct {
    /// With its module.
    let name: String
    /// The C function that initialises an empty message. The name includes the module, as a field might have the same
    /// name.
    let initializerName: String
  }

  let protoName: String
  /// The prefix of names of the module `ConnectProtobufC`.
  let runtime: String
  /// The modules that declare the names.
  let modules: [String]
  /// The name of the constant that holds the file's descriptors.
  let descriptorsName: String
  /// A `google.protobuf.FileDescriptorSet` of the file and all its imports, in base64.
  let descriptorSet: String
  /// The structs; nested structs come before the structs around them.
  let structs: [Struct]

  /// nil if the structs are not asked for or there are none.
  ///
  /// - Parameter visibleTypes: As for ``FileModel/init(_:visibleTypes:_:)``.
  /// - Throws: ``GeneratorError`` if protoc-c leaves out something that is needed.
  init?(_ file: FileDescriptor, visibleTypes: Set<String>, _ options: GeneratorOptions) throws {
    let names = ProtobufCMessages(file: file, visibleTypes: visibleTypes, options)
    guard let module = options.structModuleName, names.hasStructs(file) else { return nil }
    self.protoName = file.name
    self.runtime = names.runtime
    self.modules = ["ConnectProtobufC", module]
    self.descriptorsName = Self.descriptorsName(file.name)
    self.descriptorSet = try Self.descriptorSet(file).serializedData().base64EncodedString()
    if names.namesFieldsByOneof(file) {
      throw GeneratorError(file: file.name, line: nil, "use_oneof_field_name hides the names of fields")
    }
    self.structs = try file.messages.flatMap(Self.withNested).map { message in
      guard names.hasInitializer(message) else {
        let problem = "\(message.fullName) has no function that initializes it: gen_init_helpers is false"
        throw GeneratorError(file: file.name, line: message.sourceCodeInfoLocation?.line, problem)
      }
      if let field = message.fields.first(where: names.isStringAsBytes) {
        let problem =
          "\(message.fullName).\(field.name) is a string with string_as_bytes, of which C knows bytes only"
        throw GeneratorError(file: file.name, line: field.sourceCodeInfoLocation?.line, problem)
      }
      return Struct(
        name: names.qualified(message),
        initializerName: names.qualifiedInitializer(of: message)
      )
    }
  }

  private static func withNested(_ message: Descriptor) -> [Descriptor] {
    message.messages.flatMap(self.withNested) + [message]
  }

  /// `acme/v1/some-users.proto` is `acmeV1SomeUsersDescriptors`.
  private static func descriptorsName(_ protoName: String) -> String {
    let stem = protoName.hasSuffix(".proto") ? protoName.dropLast(".proto".count) : protoName[...]
    let words: [Substring] = stem.split { !($0.isASCII && ($0.isLetter || $0.isNumber)) } + ["descriptors"]
    let name = words.enumerated().map { index, word -> String in
      let first = word.prefix(1)
      return (index == 0 ? first.lowercased() : first.uppercased()) + word.dropFirst()
    }
    .joined()
    return name.first?.isNumber == true ? "_" + name : name
  }

  /// A descriptor set without comments; imports come before the files that import them.
  private static func descriptorSet(_ file: FileDescriptor) -> Google_Protobuf_FileDescriptorSet {
    var set = Google_Protobuf_FileDescriptorSet()
    var seen: Set<String> = []
    func add(_ file: FileDescriptor) {
      guard seen.insert(file.name).inserted else { return }
      for dependency in file.dependencies { add(dependency) }
      set.file.append(file.extractProto())
    }
    add(file)
    return set
  }
}
