package import SwiftProtobufPluginLibrary

/// Writes a service's mock.
package struct MockGenerator: ConnectGenerator {
  package static let fileSuffix = ".mock.swift"
  package static let name = "protoc-gen-connect-swift-mocks"

  package init() {}

  package func hasText(for file: FileModel) -> Bool { !file.services.isEmpty }

  package func modules(for file: FileModel) -> [String] {
    let hasMethods = file.services.contains { !$0.methods.isEmpty }
    if file.followsConnectSwift { return hasMethods ? ["ConnectSwiftCompatibility"] : [] }
    return hasMethods ? ["Connect", "ConnectTesting"] : ["ConnectTesting"]
  }

  package func publicModules(for file: FileModel) -> [String] { [] }

  package func write(_ file: FileModel, _ options: GeneratorOptions, to printer: inout CodePrinter) {
    for service in file.services {
      printer.print()
      if options.followsConnectSwift {
        ConnectSwiftMockText(service: service, options: options).write(to: &printer)
      } else {
        MockText(service: service, options: options).write(to: &printer)
      }
    }
  }
}
