import SwiftProtobufPluginLibrary

/// The text of a service's mock: the service's real client on an in-memory transport that the mock scripts.
struct MockText {
  let service: ServiceModel
  let options: GeneratorOptions

  private var modifier: String { self.options.visibility.modifier }

  func write(to printer: inout CodePrinter) {
    let service = self.service
    printer.print("/// Answers the calls of `\(service.fullName)` as scripted, and records them.")
    printer.printDeprecation(service.isDeprecated)
    let head = "\(self.modifier)final class \(service.mockName): \(service.interfaceName)"
    printer.printBlock(head) { printer in
      self.writeOptions(to: &printer)
      for method in service.methods {
        printer.print("/// Scripts and records the calls of `\(method.protoName)`.")
        printer.print("\(self.modifier)let \(method.mockName): \(service.testing)\(method.mockType)")
      }
      printer.print("private let client: \(service.clientName)", "")
      self.writeInitializer(to: &printer)
      for method in service.methods {
        for form in service.forms(of: method, self.options) {
          printer.print()
          printer.printDeprecation(method.isDeprecated)
          let recording = "self.\(method.mockName).recording(options)"
          printer.printBlock(form.declaration(self.modifier)) {
            $0.print(form.call(on: "self.client", with: ["options": recording]))
          }
        }
      }
    }
  }

  /// Refers to the options that the client was generated with. It does not compile if the mock's options differ.
  private func writeOptions(to printer: inout CodePrinter) {
    let names = self.options.shared.map {
      "  \(self.service.clientName).\(self.service.optionsName).\($0.name)"
    }
    printer.print(
      "// An error here names an option that the client was generated with, and this mock was not."
    )
    printer.print("private typealias \(self.service.optionsName) = (")
    printer.print(names.joined(separator: ",\n"))
    printer.print(")", "")
  }

  private func writeInitializer(to printer: inout CodePrinter) {
    let service = self.service
    let mockService = "\(service.testing)MockService"
    printer.printBlock("\(self.modifier)init(_ service: \(mockService) = \(mockService)())") { printer in
      printer.print("self.client = \(service.clientName)(client: service.client)")
      for method in service.methods {
        // A deprecated value would make Swift warn here, although this code does not call the method.
        let specification =
          method.isDeprecated
          ? service.specification(of: method)
          : "\(service.clientName).\(service.specsName).\(method.name)"
        printer.print("self.\(method.mockName) = service.\(method.streamType)(\(specification))")
      }
    }
  }
}

extension MethodModel {
  fileprivate var mockType: String {
    let name =
      switch self.streamType {
      case .unary: "UnaryMock"
      case .clientStream: "ClientStreamMock"
      case .serverStream: "ServerStreamMock"
      case .bidirectionalStream: "BidirectionalStreamMock"
      }
    return "\(name)<\(self.input), \(self.output)>"
  }
}
