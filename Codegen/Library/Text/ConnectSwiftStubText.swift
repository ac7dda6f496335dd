import SwiftProtobufPluginLibrary

/// The text of a service's stub in connect-swift's form.
struct ConnectSwiftStubText {
  let service: ServiceModel
  let options: GeneratorOptions

  private var modifier: String { self.options.visibility.modifier }
  private var runtime: String { self.service.compatibility }

  func write(to printer: inout CodePrinter) {
    printer.printInterface(of: self.service, self.modifier) { method in
      self.service.connectSwiftForms(of: method, self.options).map { $0.declaration() }
    }
    printer.print()
    self.writeClient(to: &printer)
  }

  private func writeClient(to printer: inout CodePrinter) {
    let service = self.service
    let interface = "\(self.runtime)ProtocolClientInterface"
    printer.printDocumentation(service.comments)
    printer.printDeprecation(service.isDeprecated)
    let head = "\(self.modifier)final class \(service.clientName): \(service.interfaceName)"
    printer.printBlock(head) { printer in
      self.writeMetadata(to: &printer)
      printer.print("", "private let client: any \(interface)", "")
      printer.printBlock("\(self.modifier)init(client: any \(interface))") {
        $0.print("self.client = client")
      }
      for method in service.methods {
        for form in service.connectSwiftForms(of: method, self.options) {
          printer.print()
          printer.printDeprecation(method.isDeprecated)
          printer.printBlock(form.declaration(self.modifier, hasDefaults: true)) {
            $0.print(form.clientCall(on: "self.client"))
          }
        }
      }
    }
  }

  private func writeMetadata(to printer: inout CodePrinter) {
    let service = self.service
    printer.print("/// The methods of `\(service.fullName)`.")
    printer.printBlock("\(self.modifier)enum \(service.metadataName)") { printer in
      printer.printBlock("\(self.modifier)enum Methods") { printer in
        for method in service.methods {
          printer.printDeprecation(method.isDeprecated)
          printer.print(
            """
            \(self.modifier)static let \(method.name) = \(self.runtime)MethodSpec(
              name: "\(method.protoName)",
              service: "\(service.fullName)",
              type: .\(method.streamType)
            )
            """
          )
        }
      }
    }
  }
}
