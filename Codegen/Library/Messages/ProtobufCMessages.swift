import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The C structs that protoc-c makes, named by protoc-c's rules. Each struct is in a handle that owns it.
struct ProtobufCMessages: MessageNaming {
  private let file: FileDescriptor
  /// The prefix of names of the module `ConnectProtobufC`.
  let runtime: String
  /// The prefix of names of the file's structs, if their module is known.
  private let structPrefix: String

  /// - Parameter visibleTypes: As for ``FileModel/init(_:visibleTypes:_:)``.
  init(file: FileDescriptor, visibleTypes: Set<String>, _ options: GeneratorOptions) {
    self.file = file
    self.runtime = "ConnectProtobufC".modulePrefix(visibleTypes)
    self.structPrefix = options.structModuleName?.modulePrefix(visibleTypes) ?? ""
  }

  func typeName(of message: Descriptor) -> String {
    "\(self.runtime)CMessage<\(self.qualified(message))>"
  }

  /// The struct's name. A struct of this file gets its module; structs of other files may be in any module.
  func qualified(_ message: Descriptor) -> String {
    let name = self.structName(message.fullName, in: message.file).escapedTypeName
    return message.file.name == self.file.name ? self.structPrefix + name : name
  }

  /// The function that makes a struct of this file the empty message, with its module.
  func qualifiedInitializer(of message: Descriptor) -> String {
    self.structPrefix + self.initializerName(message.fullName, in: message.file)
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

  // MARK: Names in C

  private func structName(_ fullName: String, in file: FileDescriptor) -> String {
    self.typePrefix(of: file) + self.cName(Self.relativeName(fullName, in: file))
  }

  /// The name of the function that makes a struct the empty message.
  private func initializerName(_ fullName: String, in file: FileDescriptor) -> String {
    let name = [self.cPackage(of: file)[...], Self.relativeName(fullName, in: file)]
    return name.filter { !$0.isEmpty }.map(self.lowerCName).joined(separator: "__") + "__init"
  }

  private static func relativeName(_ fullName: String, in file: FileDescriptor) -> Substring {
    file.package.isEmpty ? fullName[...] : fullName.dropFirst(file.package.utf8.count + 1)
  }

  /// `foo_bar.v1.some_message` is `FooBar__V1__SomeMessage` in C.
  private func cName(_ protoName: some StringProtocol) -> String {
    protoName.split(separator: ".").map { part in
      part.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }
    .joined(separator: "__")
  }

  /// `foo.v1.SomeHTTPMessage` is `foo__v1__some_httpmessage` in C. An upper-case letter gets an underscore in front,
  /// unless it is the first letter of the name or follows another upper-case letter.
  private func lowerCName(_ protoName: some StringProtocol) -> String {
    protoName.split(separator: ".").map { part in
      var name = ""
      var wasUpper = true
      for character in part {
        let isUpper = character.isUppercase
        if isUpper, !wasUpper { name += "_" }
        name += character.lowercased()
        wasUpper = isUpper
      }
      return name
    }
    .joined(separator: "__")
  }

  /// The file's package, or the value of the option `(pb_c_file).c_package` in its place.
  private func cPackage(of file: FileDescriptor) -> String {
    let cPackage = Self.options(file.options.unknownFields)?.lastBytes(of: 6)
    return cPackage.map { String(decoding: $0, as: UTF8.self) } ?? file.package
  }

  // MARK: Options of protoc-c

  /// Whether protoc-c makes structs of the file: not with the option `(pb_c_file).no_generate`.
  func hasStructs(_ file: FileDescriptor) -> Bool {
    !file.messages.isEmpty && !(Self.options(file.options.unknownFields)?.lastFlag(of: 1) ?? false)
  }

  /// Whether protoc-c makes the function that ``qualifiedInitializer(of:)`` names. It does not with
  /// `gen_init_helpers = false` on the message, on an enclosing message or on the file.
  func hasInitializer(_ message: Descriptor) -> Bool {
    if let flag = Self.options(message.options.unknownFields)?.lastFlag(of: 2) { return flag }
    if let outer = message.containingType { return self.hasInitializer(outer) }
    return Self.options(message.file.options.unknownFields)?.lastFlag(of: 3) ?? true
  }

  /// Whether the descriptors call the members of a oneof by the oneof's name: with `use_oneof_field_name` on the file.
  func namesFieldsByOneof(_ file: FileDescriptor) -> Bool {
    Self.options(file.options.unknownFields)?.lastFlag(of: 5) ?? false
  }

  /// Whether the struct and its descriptor have bytes instead of a string: with `string_as_bytes` on the field.
  func isStringAsBytes(_ field: FieldDescriptor) -> Bool {
    field.type == .string && Self.options(field.options.unknownFields)?.lastFlag(of: 1) ?? false
  }

  /// The extension `pb_c_file`, `pb_c_msg` or `pb_c_field`, which have the same number.
  private static func options(_ fields: UnknownStorage) -> WireFields? {
    WireFields(fields.data).lastBytes(of: 1019).map(WireFields.init)
  }
}

extension String {
  /// The name as written after a module's name: in backticks if the plain name means something else there.
  var escapedTypeName: String {
    ["Self", "Type", "Protocol"].contains(self) ? "`\(self)`" : self.escapedIdentifier
  }

  /// The prefix for names of the module with this name, if these types are visible.
  func modulePrefix(_ visibleTypes: Set<String>) -> String {
    self + (visibleTypes.contains(self) ? "::" : ".")
  }
}
