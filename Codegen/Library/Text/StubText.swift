import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The text of a service's stub.
struct StubText {
  let service: ServiceModel
  let options: GeneratorOptions

  private var modifier: String { self.options.visibility.modifier }
  private var runtime: String { self.service.runtime }

  func writeInterface(to printer: inout CodePrinter) {
    printer.printInterface(of: self.service, self.modifier) { method in
      self.service.forms(of: method, self.options).map { $0.declaration() }
    }
  }

  /// Functions that a protocol cannot require: forms with defaults, and short forms of unary and server-stream methods.
  func writeConveniences(to printer: inout CodePrinter) {
    guard !self.service.methods.isEmpty else { return }
    printer.print()
    printer.printDeprecation(self.service.isDeprecated)
    printer.printBlock("extension \(self.service.interfaceName)") { printer in
      for method in self.service.methods {
        for form in self.service.forms(of: method, self.options) {
          if form.isAsync { self.writeThrowingForm(of: method, to: &printer) }
          self.writeFunction(
            of: method,
            form.shortDeclaration(self.modifier),
            body: form.callFromShortForm,
            to: &printer
          )
        }
      }
    }
  }

  /// The form for methods with one request: returns only messages, and throws the call's error.
  private func writeThrowingForm(of method: MethodModel, to printer: inout CodePrinter) {
    let options = "\(self.runtime)CallOptions"
    let head =
      "\(self.modifier)func \(method.name)(_ request: \(method.input), options: \(options) = \(options)())"
    let call = "self.\(method.name)(request: request, options: options)"
    switch method.streamType {
    case .unary:
      let effects = "async throws -> \(method.output)"
      self.writeFunction(of: method, "\(head) \(effects)", body: "try await \(call).get()", to: &printer)
    case .serverStream:
      let result = "\(self.runtime)StreamMessages<\(method.output)>"
      self.writeFunction(of: method, "\(head) -> \(result)", body: "\(call).messages", to: &printer)
    case .clientStream, .bidirectionalStream:
      break
    }
  }

  private func writeFunction(
    of method: MethodModel,
    _ head: String,
    body: String,
    to printer: inout CodePrinter
  ) {
    if !printer.isEmpty { printer.print() }
    printer.printDocumentation(method.comments)
    printer.printDeprecation(method.isDeprecated)
    printer.printBlock(head) { $0.print(body) }
  }

  func writeClient(to printer: inout CodePrinter) {
    let service = self.service
    printer.print()
    printer.printDocumentation(service.comments)
    printer.printDeprecation(service.isDeprecated)
    printer.printBlock("\(self.modifier)struct \(service.clientName): \(service.interfaceName)") { printer in
      self.writeSpecifications(to: &printer)
      printer.print()
      self.writeOptions(to: &printer)
      printer.print("", "private let client: \(self.runtime)ProtocolClient", "")
      printer.printBlock("\(self.modifier)init(client: \(self.runtime)ProtocolClient)") {
        $0.print("self.client = client")
      }
      for method in service.methods {
        for form in service.forms(of: method, self.options) {
          printer.print()
          printer.printDeprecation(method.isDeprecated)
          printer.printBlock(form.declaration(self.modifier)) {
            $0.print(form.clientCall(on: "self.client", "Self.\(service.specsName).\(method.name)"))
          }
        }
      }
    }
  }

  private func writeSpecifications(to printer: inout CodePrinter) {
    printer.print("/// The methods of `\(self.service.fullName)`.")
    printer.printBlock("\(self.modifier)enum \(self.service.specsName)") { printer in
      for method in self.service.methods {
        printer.printDeprecation(method.isDeprecated)
        printer.print("\(self.modifier)static let \(method.name) = \(self.service.specification(of: method))")
      }
    }
  }

  /// Types that a mock refers to. Types for other option values are unavailable, so that the compiler names the
  /// differing option.
  private func writeOptions(to printer: inout CodePrinter) {
    printer.print("/// The options that mocks need as well.")
    printer.printBlock("\(self.modifier)enum \(self.service.optionsName)") { printer in
      for option in self.options.shared {
        printer.print("\(self.modifier)typealias \(option.name) = Swift.Void")
        for value in option.otherValues {
          let message = "generate the mock with \(option.key)=\(option.value), as the client was"
          printer.print("@available(*, unavailable, message: \"\(message)\")")
          printer.print("\(self.modifier)typealias \(option.name(of: value)) = Swift.Void")
        }
      }
    }
  }
}

extension ServiceModel {
  /// An expression that makes the method's specification.
  func specification(of method: MethodModel) -> String {
    let idempotencyLevel =
      switch method.idempotencyLevel {
      case .idempotencyUnknown: ""
      case .noSideEffects: ",\n  idempotencyLevel: .noSideEffects"
      case .idempotent: ",\n  idempotencyLevel: .idempotent"
      }
    return """
      \(self.runtime)MethodSpec<\(method.input), \(method.output)>(
        path: "\(method.path)",
        streamType: .\(method.streamType)\(idempotencyLevel)
      )
      """
  }
}

extension CodePrinter {
  /// The protocol that a service's client and mock implement.
  ///
  /// - Parameter declarations: The functions of a method. The first one has the comments of the proto file.
  mutating func printInterface(
    of service: ServiceModel,
    _ modifier: String,
    declarations: (MethodModel) -> [String]
  ) {
    self.print(service.comments)
    self.printDeprecation(service.isDeprecated)
    self.printBlock("\(modifier)protocol \(service.interfaceName): Swift.Sendable") { printer in
      for method in service.methods {
        for (index, declaration) in declarations(method).enumerated() {
          if !printer.isEmpty { printer.print() }
          if index == 0 {
            printer.print(method.comments)
          } else {
            printer.printDocumentation(method.comments)
          }
          printer.printDeprecation(method.isDeprecated)
          printer.print(declaration)
        }
      }
    }
  }
}
