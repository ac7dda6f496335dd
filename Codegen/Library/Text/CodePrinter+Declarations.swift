import SwiftProtobufPluginLibrary

extension CodePrinter {
  /// Writes all comments, for the first declaration that stands for something of the proto file.
  mutating func print(_ comments: Comments) {
    for lines in comments.detached {
      for line in lines { self.print(line.isEmpty ? "//" : "// \(line)") }
      self.print()
    }
    self.printDocumentation(comments)
  }

  /// Writes those comments alone that are about the declaration.
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
  /// What stands before a declaration.
  var modifier: String {
    switch self {
    case .internal: ""
    case .package: "package "
    case .public: "public "
    }
  }
}
