import SwiftProtobufPluginLibrary

extension CodePrinter {
  /// Writes all comments, in front of the first declaration for an element of the proto file.
  mutating func print(_ comments: Comments) {
    for lines in comments.detached {
      for line in lines { self.print(line.isEmpty ? "//" : "// \(line)") }
      self.print()
    }
    self.printDocumentation(comments)
  }

  /// Writes only the comments that are about the declaration.
  mutating func printDocumentation(_ comments: Comments) {
    for line in comments.documentation { self.print(line.isEmpty ? "///" : "/// \(line)") }
  }

  mutating func printDeprecation(_ isDeprecated: Bool) {
    if isDeprecated { self.print("@available(*, deprecated)") }
  }

  /// Writes `head { … }`, or `head {}` if there is nothing in it.
  mutating func printBlock(_ head: String, _ body: (inout CodePrinter) -> Void) {
    var inner = CodePrinter(self)
    inner.indent()
    body(&inner)
    guard !inner.isEmpty else { return self.print("\(head) {}") }
    self.print("\(head) {")
    self.append(inner)
    self.print("}")
  }
}

extension GeneratorOptions.Visibility {
  /// The access modifier in front of a declaration.
  var modifier: String {
    switch self {
    case .internal: ""
    case .package: "package "
    case .public: "public "
    }
  }
}
