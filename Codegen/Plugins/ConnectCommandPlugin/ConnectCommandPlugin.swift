import Foundation
import PackagePlugin

/// `swift package generate-connect`: generates messages, stubs and mocks into the folders of targets, to commit them.
@main
struct ConnectCommandPlugin: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) async throws {
    var extractor = ArgumentExtractor(arguments)
    let names = extractor.extractOption(named: "target")
    if let argument = extractor.remainingArguments.first {
      throw PluginError(
        "unknown argument '\(argument)'; usage: swift package generate-connect [--target NAME]…"
      )
    }
    let targets = names.isEmpty ? context.package.targets : try context.package.targets(named: names)
    var count = 0
    for target in targets where try self.generate(for: target, isNamed: !names.isEmpty, context) {
      count += 1
    }
    if count == 0 {
      throw PluginError("no target of this package has a \(Configuration.fileName) with an 'output'")
    }
  }

  /// - Returns: Whether the target is one of this plugin's.
  private func generate(for target: any Target, isNamed: Bool, _ context: PluginContext) throws -> Bool {
    let configurationFile = target.directoryURL.appending(path: Configuration.fileName)
    guard FileManager.default.fileExists(atPath: configurationFile.path) else {
      if isNamed { throw PluginError("the target \(target.name) has no \(configurationFile.path)") }
      return false
    }
    let generation = try Generation(configurationFile: configurationFile)
    guard let path = generation.configuration.output else {
      if isNamed { throw PluginError("\(configurationFile.path) has no 'output', the folder to write to") }
      return false
    }
    try generation.checkMocks(context.package.targets.neighbours(of: target))
    let output = target.directoryURL.resolving(path)
    try FileManager.default.createDirectory(at: output, withIntermediateDirectories: true)
    let process = Process()
    process.executableURL = try generation.protoc()
    process.arguments = try generation.protocArguments(output: output) { try context.tool(named: $0).url }
    try process.run()
    process.waitUntilExit()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      throw PluginError("protoc failed for the target \(target.name)")
    }
    print("Generated the proto files of \(target.name) into \(output.path)")
    return true
  }
}
