import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// A proto file as the generators see it.
struct FileModel {
  let name: String
  let services: [ServiceModel]
  /// The modules of the messages that its methods take and give; sorted.
  let messageModules: [String]

  /// - Throws: ``GeneratorError`` if the file asks for something that cannot be generated.
  init(_ file: FileDescriptor, _ options: GeneratorOptions) throws {
    let prefix = file.options.swiftPrefix
    guard prefix.isEmpty || isValidSwiftIdentifier(prefix) else {
      let problem = "the option swift_prefix is '\(prefix)', which is no Swift identifier"
      throw GeneratorError(file: file.name, line: file.sourceCodeInfoLocation(path: [8, 39])?.line, problem)
    }
    self.name = file.name
    let messages = options.messages(for: file)
    // What the file's own types and those that it imports are called, so that the services get other names.
    let typeNames = file.withDependencies.flatMap { messages.topLevelTypeNames(of: $0) }
    var scope = NameScope(taken: typeNames)
    self.services = file.services.map {
      ServiceModel($0, options, messages, typeNames: Set(typeNames), scope: &scope)
    }
    let used = file.services.flatMap(\.methods).flatMap { [$0.inputType, $0.outputType] }.compactMap { $0 }
    self.messageModules = Set(used.flatMap { messages.modules(for: $0) }).sorted()
  }
}

extension FileDescriptor {
  /// The file and all that it imports, directly or not; each once.
  fileprivate var withDependencies: [FileDescriptor] {
    var seen: Set<String> = [self.name]
    var files = [self]
    var index = 0
    while index < files.count {
      files += files[index].dependencies.filter { seen.insert($0.name).inserted }
      index += 1
    }
    return files
  }
}
