package import SwiftProtobufPluginLibrary

/// Writes a service's mock.
package struct MockGenerator: ConnectGenerator {
  package static let fileSuffix = ".mock.swift"
  package static let name = "protoc-gen-connect-swift-mocks"

  package init() {}

  package func hasText(for file: FileModel) -> Bool { !file.services.isEmpty }

  package func modules(for file: FileModel) -> [String] {
    file.services.allSatisfy(\.methods.isEmpty) ? ["ConnectTesting"] : ["Connect", "ConnectTesting"]
  }

  package func publicModules(for file: FileModel) -> [String] { [] }

  package func write(_ file: FileModel, _ options: GeneratorOptions, to printer: inout CodePrinter) {
    for service in file.services {
      printer.print()
      MockText(service: service, options: options).write(to: &printer)
    }
  }
}
