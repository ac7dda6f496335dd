import Foundation
import PackagePlugin

/// Generates a target's messages, stubs and mocks whenever it is built and a proto file has changed.
@main
struct ConnectBuildPlugin: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) async throws -> [Command] {
    let configurationFile = target.directoryURL.appending(path: Configuration.fileName)
    guard FileManager.default.fileExists(atPath: configurationFile.path) else {
      throw PluginError("the target \(target.name) uses \(Self.self) but has no \(configurationFile.path)")
    }
    let generation = try Generation(configurationFile: configurationFile)
    try generation.checkMocks(context.package.targets.neighbours(of: target))
    let output = context.pluginWorkDirectoryURL
    var generators: [URL] = []
    // The outputs have to be known beforehand; file names of the build folder concern nobody.
    let arguments = try generation.protocArguments(
      output: output,
      fixedOptions: ["FileNaming": "PathToUnderscores", "GenerateEmptyFiles": "true"]
    ) { name in
      let url = try context.tool(named: name).url
      generators.append(url)
      return url
    }
    return [
      .buildCommand(
        displayName: "Generating Swift from the proto files of \(target.name)",
        executable: try generation.protoc(),
        arguments: arguments,
        inputFiles: generation.inputFiles + generators,
        outputFiles: generation.outputFiles(in: output)
      )
    ]
  }
}
