import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// A proto file as the generators see it.
package struct FileModel {
  let name: String
  let services: [ServiceModel]
  /// Whether the stubs are in connect-swift's form.
  let followsConnectSwift: Bool
  /// The modules of the methods' input and output messages; sorted.
  let messageModules: [String]
  /// The C structs of the file's messages; nil if they are not asked for or there are none.
  let structs: StructsModel?

  /// - Parameter visibleTypes: The names of all types that are visible to the file's code. They hide modules of the
  ///   same names, except from module selectors. Nothing else may depend on these names: they change with the files
  ///   that happen to be generated together.
  /// - Throws: ``GeneratorError`` if the file asks for something that cannot be generated.
  init(_ file: FileDescriptor, visibleTypes: Set<String>, _ options: GeneratorOptions) throws {
    let prefix = file.options.swiftPrefix
    guard prefix.isEmpty || isValidSwiftIdentifier(prefix) else {
      let problem = "the option swift_prefix is '\(prefix)', which is no Swift identifier"
      throw GeneratorError(file: file.name, line: file.sourceCodeInfoLocation(path: [8, 39])?.line, problem)
    }
    self.name = file.name
    self.followsConnectSwift = options.followsConnectSwift
    let messages = options.messages(for: file, visibleTypes: visibleTypes)
    // Services must not share names with the file's types or with imported types.
    let typeNames = Self.typeNames(visibleIn: [file], options)
    var scope = NameScope(taken: typeNames)
    self.services = file.services.map {
      ServiceModel($0, options, messages, typeNames: typeNames, visibleTypes: visibleTypes, scope: &scope)
    }
    let used = file.services.flatMap(\.methods).flatMap { [$0.inputType, $0.outputType] }.compactMap { $0 }
    let structModules = used.isEmpty ? [] : [options.structModuleName].compactMap { $0 }
    self.messageModules = Set(used.flatMap { messages.modules(for: $0) } + structModules).sorted()
    self.structs = try StructsModel(file, visibleTypes: visibleTypes, options)
  }

  /// The names of the types at the top level of the files and of all their imports.
  static func typeNames(visibleIn files: [FileDescriptor], _ options: GeneratorOptions) -> Set<String> {
    Set(files.withDependencies.flatMap { options.messages(for: $0).topLevelTypeNames(of: $0) })
  }
}

extension [FileDescriptor] {
  /// The files and all direct and indirect imports; each once.
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
