import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// A proto file as the generators see it.
struct FileModel {
  let name: String
  let services: [ServiceModel]
  /// The modules of the messages that its methods take and give; sorted.
  let messageModules: [String]

  /// - Parameter together: All files that are generated with this one, for the same module.
  /// - Throws: ``GeneratorError`` if the file asks for something that cannot be generated.
  init(_ file: FileDescriptor, together: [FileDescriptor], _ options: GeneratorOptions) throws {
    let prefix = file.options.swiftPrefix
    guard prefix.isEmpty || isValidSwiftIdentifier(prefix) else {
      let problem = "the option swift_prefix is '\(prefix)', which is no Swift identifier"
      throw GeneratorError(file: file.name, line: file.sourceCodeInfoLocation(path: [8, 39])?.line, problem)
    }
    self.name = file.name
    let messages = options.messages(for: file)
    // What the file's own types and those that it imports are called, so that the services get other names.
    let typeNames = Set([file].withDependencies.flatMap { messages.topLevelTypeNames(of: $0) })
    // A type that has a module's name hides the module, except from a module selector. It can be in another file; the
    // names of services must not depend on which files those are.
    let hiddenModules = Set(together.withDependencies.flatMap { messages.topLevelTypeNames(of: $0) })
    var scope = NameScope(taken: typeNames)
    self.services = file.services.map {
      ServiceModel($0, options, messages, typeNames: typeNames, hiddenModules: hiddenModules, scope: &scope)
    }
    let used = file.services.flatMap(\.methods).flatMap { [$0.inputType, $0.outputType] }.compactMap { $0 }
    self.messageModules = Set(used.flatMap { messages.modules(for: $0) }).sorted()
  }
}

extension [FileDescriptor] {
  /// The files and all that they import, directly or not; each once.
  fileprivate var withDependencies: [FileDescriptor] {
    var seen = Set(self.map(\.name))
    var files = self
    var index = 0
    while index < files.count {
      files += files[index].dependencies.filter { seen.insert($0.name).inserted }
      index += 1
    }
    return files
  }
}
