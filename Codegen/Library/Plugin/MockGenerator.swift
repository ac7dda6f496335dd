package import SwiftProtobufPluginLibrary

/// Writes a service's mock.
package struct MockGenerator: ConnectGenerator {
  package static let fileSuffix = ".mock.swift"
  package static let name = "protoc-gen-connect-swift-mocks"

  package init() {}

  package func runtimeModules(for file: FileModel) -> [String] {
    file.services.allSatisfy(\.methods.isEmpty) ? ["ConnectTesting"] : ["Connect", "ConnectTesting"]
  }

  package func write(_ service: ServiceModel, _ options: GeneratorOptions, to printer: inout CodePrinter) {
    MockText(service: service, options: options).write(to: &printer)
  }
}
