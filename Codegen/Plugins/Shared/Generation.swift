import Foundation

/// One run of protoc for one target: messages, stubs and mocks together.
struct Generation {
  let configuration: Configuration
  let configurationFile: URL
  private let protoRoots: [URL]
  /// The proto files to generate, relative to one of the roots; sorted.
  private let protoFiles: [String]
  /// All proto files below the roots.
  private let allProtoFiles: [URL]

  /// - Throws: ``PluginError`` if the configuration is not right.
  init(configurationFile: URL) throws {
    let configuration = try Configuration(contentsOf: configurationFile)
    self.configuration = configuration
    self.configurationFile = configurationFile
    let folder = configurationFile.deletingLastPathComponent()
    self.protoRoots = configuration.protoRoots.map { folder.resolving($0) }
    var found: [String: URL] = [:]
    for root in self.protoRoots {
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: root.path, isDirectory: &isFolder), isFolder.boolValue
      else {
        throw PluginError(
          "\(configurationFile.path): there is no folder '\(root.path)', which protoRoots names"
        )
      }
      for file in try Self.protoFiles(below: root) where found[file] == nil {
        found[file] = root.appending(path: file)
      }
    }
    for file in configuration.files ?? [] where found[file] == nil {
      let roots = self.protoRoots.map(\.path).joined(separator: ", ")
      throw PluginError("\(configurationFile.path): there is no proto file '\(file)' below \(roots)")
    }
    self.protoFiles = (configuration.files ?? Array(found.keys)).sorted()
    self.allProtoFiles = found.values.sorted { $0.path < $1.path }
    if self.generators.isEmpty {
      throw PluginError("\(configurationFile.path): messages, stubs and mocks are all false")
    }
    if self.protoFiles.isEmpty {
      throw PluginError("\(configurationFile.path): there is no proto file below its protoRoots")
    }
  }

  private static func protoFiles(below root: URL) throws -> [String] {
    guard let paths = FileManager.default.enumerator(atPath: root.path) else {
      throw PluginError("the folder '\(root.path)' of protoRoots cannot be read")
    }
    return paths.compactMap { $0 as? String }.filter { $0.hasSuffix(".proto") }
  }

  // MARK: Running protoc

  /// What changes the outcome, apart from the generators.
  var inputFiles: [URL] {
    let imported = self.importPaths.flatMap { path in
      ((try? Self.protoFiles(below: path)) ?? []).map { path.appending(path: $0) }
    }
    return [self.configurationFile] + self.allProtoFiles + imported
  }

  /// The protoc that the configuration, the variable `PROTOC_PATH` or the variable `PATH` names.
  ///
  /// - Throws: ``PluginError`` if there is none.
  func protoc() throws -> URL {
    let environment = ProcessInfo.processInfo.environment
    let folder = self.configurationFile.deletingLastPathComponent()
    if let path = self.configuration.protocPath {
      return try Self.executable(folder.resolving(path), "protocPath in \(self.configurationFile.path)")
    }
    if let path = environment["PROTOC_PATH"], !path.isEmpty {
      return try Self.executable(URL(filePath: path), "the environment variable PROTOC_PATH")
    }
    for folder in (environment["PATH"] ?? "").split(separator: ":") {
      let url = URL(filePath: String(folder)).appending(path: "protoc")
      if FileManager.default.isExecutableFile(atPath: url.path) { return url }
    }
    throw PluginError(
      """
      protoc was not found. Install it (on Debian: apt-get install protobuf-compiler libprotobuf-dev), or say where it \
      is: as protocPath in \(self.configurationFile.path), or in the environment variable PROTOC_PATH.
      """
    )
  }

  private static func executable(_ url: URL, _ source: String) throws -> URL {
    guard FileManager.default.isExecutableFile(atPath: url.path) else {
      throw PluginError("protoc was not found: \(source) is '\(url.path)', where no program is")
    }
    return url
  }

  /// - Parameters:
  ///   - fixedOptions: Options that the plugin decides, in place of those of the configuration.
  ///   - tool: Finds a generator by its name.
  func protocArguments(
    output: URL,
    fixedOptions: [String: String] = [:],
    tool: (String) throws -> URL
  ) throws -> [String] {
    var arguments = (self.protoRoots + self.importPaths).flatMap { ["-I", $0.path] }
    for generator in self.generators {
      arguments += [
        "--plugin=protoc-gen-\(generator.name)=\(try tool("protoc-gen-\(generator.name)").path)",
        "--\(generator.name)_out=\(output.path)",
      ]
      arguments += self.options(of: generator, fixedOptions).map { "--\(generator.name)_opt=\($0)" }
    }
    return arguments + self.protoFiles
  }

  private var importPaths: [URL] {
    let folder = self.configurationFile.deletingLastPathComponent()
    return self.configuration.importPaths.map { folder.resolving($0) }
  }

  /// Where ``protocArguments(output:fixedOptions:tool:)`` with `FileNaming=PathToUnderscores` writes.
  func outputFiles(in output: URL) -> [URL] {
    self.protoFiles.flatMap { file in
      let stem = file.dropLast(".proto".count).split(separator: "/").joined(separator: "_")
      return self.generators.map { output.appending(path: "\(stem)\($0.suffix)") }
    }
  }

  // MARK: Generators

  private struct Generator {
    let name: String
    let suffix: String
    /// The options that it takes; nil if it says so itself.
    var knownOptions: Set<String>?
  }

  private var generators: [Generator] {
    var generators: [Generator] = []
    if self.configuration.messages {
      let options: Set = [
        "FileNaming", "ProtoPathModuleMappings", "SwiftProtobufModuleName", "UseAccessLevelOnImports",
        "Visibility",
      ]
      generators.append(Generator(name: "swift", suffix: ".pb.swift", knownOptions: options))
    }
    if self.configuration.stubs {
      generators.append(Generator(name: "connect-swift", suffix: ".connect.swift"))
    }
    if self.configuration.mocks {
      generators.append(Generator(name: "connect-swift-mocks", suffix: ".mock.swift"))
    }
    return generators
  }

  private func options(of generator: Generator, _ fixed: [String: String]) -> [String] {
    var options = self.configuration.options
    if let known = generator.knownOptions {
      options = options.filter { known.contains($0.key) }
      options.merge(self.configuration.messageOptions) { $1 }
    }
    let folder = self.configurationFile.deletingLastPathComponent()
    for (key, value) in fixed where generator.knownOptions?.contains(key) ?? true {
      options[key] = .one(value)
    }
    return options.sorted { $0.key < $1.key }.flatMap { key, value in
      value.values.map { "\(key)=\(key == "ProtoPathModuleMappings" ? folder.resolving($0).path : $0)" }
    }
  }
}

extension URL {
  /// `path` below this folder, or `path` itself if it is absolute.
  func resolving(_ path: String) -> URL {
    path.hasPrefix("/") ? URL(filePath: path) : self.appending(path: path).standardizedFileURL
  }
}
