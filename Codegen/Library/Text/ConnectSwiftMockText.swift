import SwiftProtobufPluginLibrary

/// The text of a service's mock in connect-swift's form: a variable for each function, which answers its calls.
struct ConnectSwiftMockText {
  let service: ServiceModel
  let options: GeneratorOptions

  /// Public mock classes may be subclassed, as in connect-swift.
  private var openModifier: String {
    self.options.visibility == .public ? "open " : self.options.visibility.modifier
  }

  func write(to printer: inout CodePrinter) {
    let service = self.service
    let modifier = self.options.visibility.modifier
    printer.print(
      """
      /// Answers the calls of `\(service.fullName)` with what tests set.
      ///
      /// `@unchecked Sendable`: tests set its variables before they make calls.
      """
    )
    printer.printDeprecation(service.isDeprecated)
    let head =
      "\(self.openModifier)class \(service.mockName): \(service.interfaceName), @unchecked Swift.Sendable"
    printer.printBlock(head) { printer in
      for method in service.methods {
        for form in service.connectSwiftForms(of: method, self.options) {
          printer.print("/// Answers \(form.isAsync ? "async " : "")calls of `\(method.protoName)`.")
          printer.print("\(modifier)var \(form.mockName) = \(form.mockValue)")
        }
      }
      if !service.methods.isEmpty { printer.print() }
      printer.print("\(modifier)init() {}")
      for method in service.methods {
        for form in service.connectSwiftForms(of: method, self.options) {
          printer.print()
          printer.printDeprecation(method.isDeprecated)
          printer.printBlock(form.declaration(self.openModifier, hasDefaults: true)) { printer in
            for line in form.mockBody { printer.print(line) }
          }
        }
      }
    }
  }
}
