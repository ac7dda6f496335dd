package import SwiftProtobufPluginLibrary

/// Writes a service's interface and its client.
package struct StubGenerator: ConnectGenerator {
  package static let fileSuffix = ".connect.swift"
  package static let name = "protoc-gen-connect-swift"

  package init() {}

  package func runtimeModules(for file: FileModel) -> [String] { ["Connect"] }

  package func write(_ service: ServiceModel, _ options: GeneratorOptions, to printer: inout CodePrinter) {
    let text = StubText(service: service, options: options)
    text.writeInterface(to: &printer)
    text.writeConveniences(to: &printer)
    text.writeClient(to: &printer)
  }
}
