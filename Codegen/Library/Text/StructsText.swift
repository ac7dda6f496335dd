import SwiftProtobufPluginLibrary

/// The text that makes protoc-c's structs messages.
struct StructsText {
  let structs: StructsModel
  let options: GeneratorOptions

  func write(to printer: inout CodePrinter) {
    let runtime = self.structs.runtime
    let descriptors = self.structs.descriptorsName
    printer.print(
      "",
      "/// The descriptors of `\(self.structs.protoName)` and of all that it imports.",
      "\(self.options.visibility.modifier)let \(descriptors) = \(runtime)DescriptorSource(",
      "  base64: \"\(self.structs.descriptorSet)\"",
      ")"
    )
    for item in self.structs.structs {
      printer.print()
      printer.printBlock("extension \(item.name): \(runtime)CMessageStruct") {
        $0.print(
          """
          public static let messageType = \(runtime)CMessageType<Self>(
            \(item.initializerName),
            descriptors: \(descriptors)
          )
          """
        )
      }
    }
  }
}
