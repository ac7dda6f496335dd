import SwiftProtobuf
import SwiftProtobufPluginLibrary

extension GeneratorOptions {
  /// - Throws: ``OptionError`` for an unknown key, and for a value that the key does not allow.
  package init(pairs: [(key: String, value: String)]) throws {
    var mappingsPath: String?
    var swiftProtobufModuleName: String?
    for (key, value) in pairs {
      switch key {
      case "Visibility": self.visibility = try Self.choice(key, value)
      case "FileNaming": self.fileNaming = try Self.choice(key, value)
      case "MessageFamily": self.messageFamily = try Self.choice(key, value)
      case "ConnectSwiftCompatibility": self.followsConnectSwift = try Self.flag(key, value)
      case "GenerateAsyncMethods": self.generatesAsyncMethods = try Self.flag(key, value)
      case "GenerateCallbackMethods": self.generatesCallbackMethods = try Self.flag(key, value)
      case "GenerateEmptyFiles": self.generatesEmptyFiles = try Self.flag(key, value)
      case "KeepMethodCasing": self.keepsMethodCasing = try Self.flag(key, value)
      case "UseAccessLevelOnImports": self.usesAccessLevelOnImports = try Self.flag(key, value)
      case "ExtraModuleImports": self.extraModuleImports.append(try Self.moduleName(key, value))
      case "StructModuleName": self.structModuleName = try Self.moduleName(key, value)
      case "SwiftProtobufModuleName": swiftProtobufModuleName = try Self.moduleName(key, value)
      case "ProtoPathModuleMappings":
        guard !value.isEmpty else { throw OptionError(key: key, value: value, expected: "a path") }
        mappingsPath = value
      default: throw OptionError.unknown(key: key)
      }
    }
    guard self.generatesAsyncMethods || self.generatesCallbackMethods else { throw OptionError.noMethods }
    guard self.structModuleName == nil || self.messageFamily == .protobufC else {
      throw OptionError.structsOfAnotherFamily
    }
    guard !self.followsConnectSwift || self.messageFamily == .swiftProtobuf else {
      throw OptionError.connectSwiftWithAnotherFamily
    }
    self.moduleMappings = try Self.mappings(path: mappingsPath, swiftProtobufModuleName)
  }

  private static func choice<Choice: CaseIterable & RawRepresentable<String>>(
    _ key: String,
    _ value: String
  ) throws -> Choice {
    if let choice = Choice(rawValue: value) { return choice }
    let names = Choice.allCases.map(\.rawValue)
    throw OptionError(key: key, value: value, expected: "one of \(names.joined(separator: ", "))")
  }

  private static func flag(_ key: String, _ value: String) throws -> Bool {
    if let flag = Bool(value) { return flag }
    throw OptionError(key: key, value: value, expected: "true or false")
  }

  private static func moduleName(_ key: String, _ value: String) throws -> String {
    guard isValidSwiftIdentifier(value) else {
      throw OptionError(key: key, value: value, expected: "the name of a module")
    }
    return value
  }

  private static func mappings(
    path: String?,
    _ swiftProtobufModuleName: String?
  ) throws -> ProtoFileToModuleMappings {
    guard let path else { return ProtoFileToModuleMappings(swiftProtobufModuleName: swiftProtobufModuleName) }
    do {
      return try ProtoFileToModuleMappings(path: path, swiftProtobufModuleName: swiftProtobufModuleName)
    } catch {
      throw OptionError(mappingsPath: path, problem: error)
    }
  }
}

/// An invalid option among those that protoc passed to the generator.
package struct OptionError: Error, CustomStringConvertible {
  package let description: String

  private init(_ description: String) {
    self.description = description
  }

  init(key: String, value: String, expected: String) {
    self.init("the option \(key) is '\(value)', expected is \(expected)")
  }

  init(mappingsPath: String, problem: any Error) {
    self.init("the option ProtoPathModuleMappings is '\(mappingsPath)', which cannot be used: \(problem)")
  }

  static func unknown(key: String) -> OptionError {
    OptionError("there is no option '\(key)'")
  }

  static let structsOfAnotherFamily = OptionError("the option StructModuleName needs MessageFamily=ProtobufC")
  static let connectSwiftWithAnotherFamily = OptionError(
    "the option ConnectSwiftCompatibility needs MessageFamily=SwiftProtobuf"
  )
  static let noMethods = OptionError("GenerateAsyncMethods and GenerateCallbackMethods are both false")
}
