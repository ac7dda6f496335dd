package import SwiftProtobufPluginLibrary

/// Writes a service's interface and client, and the conformances that make C structs messages.
package struct StubGenerator: ConnectGenerator {
  package static let fileSuffix = ".connect.swift"
  package static let name = "protoc-gen-connect-swift"

  package init() {}

  package func hasText(for file: FileModel) -> Bool { !file.services.isEmpty || file.structs != nil }

  package func modules(for file: FileModel) -> [String] {
    let runtime = file.followsConnectSwift ? "ConnectSwiftCompatibility" : "Connect"
    return (file.services.isEmpty ? [] : [runtime]) + (file.structs?.modules ?? [])
  }

  /// Swift treats a conformance as public if the struct is public, even if the struct is imported with less access.
  package func publicModules(for file: FileModel) -> [String] { file.structs?.modules ?? [] }

  package func write(_ file: FileModel, _ options: GeneratorOptions, to printer: inout CodePrinter) {
    for service in file.services {
      guard !options.followsConnectSwift else {
        printer.print()
        ConnectSwiftStubText(service: service, options: options).write(to: &printer)
        continue
      }
      let text = StubText(service: service, options: options)
      printer.print()
      text.writeInterface(to: &printer)
      text.writeConveniences(to: &printer)
      text.writeClient(to: &printer)
    }
    if let structs = file.structs { StructsText(structs: structs, options: options).write(to: &printer) }
  }
}
