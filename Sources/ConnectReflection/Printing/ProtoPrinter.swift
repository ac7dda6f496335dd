internal import SwiftProtobuf

/// Prints the descriptors of one file as proto source.
///
/// The output compiles to the same descriptors, except for options that no file defines. A comment describes these
/// options.
struct ProtoPrinter {
  typealias File = Google_Protobuf_FileDescriptorProto

  let file: File
  let index: SymbolIndex
  let locations: SourceLocations
  let names: TypeNames
  var options: OptionReader
  private(set) var text = ""
  var depth = 0
  /// Whether a blank line should follow the last line.
  var needsBlankLine = false

  init(_ file: File, _ index: SymbolIndex) {
    self.file = file
    self.index = index
    self.locations = SourceLocations(file.sourceCodeInfo)
    self.names = TypeNames(index: index)
    self.options = OptionReader(index)
  }

  var isEditions: Bool { self.file.syntax == "editions" }
  var isProto3: Bool { self.file.syntax == "proto3" }

  // MARK: Lines

  mutating func line(_ line: String) {
    if self.needsBlankLine {
      self.needsBlankLine = false
      self.text += "\n"
    }
    if !line.isEmpty { self.text += String(repeating: "  ", count: self.depth) + line }
    self.text += "\n"
  }

  /// Adds a blank line before the next line, unless it is the first line.
  mutating func separate() {
    self.needsBlankLine = !self.text.isEmpty && !self.text.hasSuffix("{\n")
  }

  /// Lines in braces.
  mutating func block(
    _ head: String,
    at location: SourceLocations.Location?,
    _ body: (inout ProtoPrinter) -> Void
  ) {
    self.leadingComments(location)
    let trailing = self.lines(of: location?.trailingComments ?? "")
    if trailing.count == 1 {
      self.line("\(head) { //\(trailing[0])")
    } else {
      self.line("\(head) {")
    }
    let length = self.text.utf8.count
    self.depth += 1
    if trailing.count > 1 {
      for line in trailing { self.line("//\(line)") }
      self.needsBlankLine = true
    }
    body(&self)
    self.depth -= 1
    self.needsBlankLine = false
    if self.text.utf8.count == length, trailing.isEmpty {
      self.text.removeLast()
      self.text += "}\n"
    } else {
      self.line("}")
    }
  }

  /// A statement with the comments around it.
  mutating func statement(_ lines: [String], at location: SourceLocations.Location?) {
    self.leadingComments(location)
    for line in lines.dropLast() { self.line(line) }
    let trailing = self.lines(of: location?.trailingComments ?? "")
    if trailing.count == 1 {
      self.line("\(lines.last ?? "") //\(trailing[0])")
    } else {
      self.line(lines.last ?? "")
      for line in trailing { self.line("//\(line)") }
      // Without a blank line, the comment would belong to the next statement.
      if !trailing.isEmpty { self.needsBlankLine = true }
    }
  }

  mutating func statement(_ line: String, at path: [Int32]) {
    self.statement([line], at: self.locations.location(at: path))
  }

  // MARK: Comments

  mutating func leadingComments(_ location: SourceLocations.Location?) {
    guard let location else { return }
    for comment in location.leadingDetachedComments {
      // Without a blank line, the comment would belong to the statement before it.
      self.needsBlankLine = !self.text.isEmpty
      for line in self.lines(of: comment) { self.line("//\(line)") }
      self.needsBlankLine = true
    }
    for line in self.lines(of: location.leadingComments) { self.line("//\(line)") }
  }

  private func lines(of comment: String) -> [String] {
    guard !comment.isEmpty else { return [] }
    // Split by bytes: as characters, CR and LF would be one.
    var lines = comment.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
      ProtoText.comment(Substring($0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0))
    }
    if lines.last?.isEmpty == true { lines.removeLast() }
    return lines
  }

  // MARK: Files

  mutating func printFile() {
    let file = self.file
    if self.isEditions {
      self.statement("edition = \(ProtoText.quoted(self.edition));", at: self.editionPath)
    } else {
      let syntax = file.syntax.isEmpty ? "proto2" : file.syntax
      self.statement("syntax = \(ProtoText.quoted(syntax));", at: [12])
    }
    self.separate()
    if !file.package.isEmpty {
      self.statement("package \(file.package);", at: [2])
      self.separate()
    }
    self.printImports()
    self.separate()
    self.printOptions(file.options, named: "FileOptions", at: [8], scope: file.package)
    self.separate()
    self.printElements(self.elements(ofFile: file), scope: file.package)
  }

  private var editionPath: [Int32] { self.locations.location(at: [14]) == nil ? [12] : [14] }

  private var edition: String {
    switch self.file.edition {
    case .proto2: "proto2"
    case .proto3: "proto3"
    case .edition2023: "2023"
    case .edition2024: "2024"
    case .edition2026: "2026"
    case .unstable: "UNSTABLE"
    default: "\(self.file.edition.rawValue)"
    }
  }

  private mutating func printImports() {
    let publicImports = Set(self.file.publicDependency)
    let weakImports = Set(self.file.weakDependency)
    for (number, name) in self.file.dependency.enumerated() {
      let number = Int32(number)
      let kind = publicImports.contains(number) ? "public " : weakImports.contains(number) ? "weak " : ""
      self.statement("import \(kind)\(ProtoText.quoted(name));", at: [3, number])
    }
    for (number, name) in self.file.optionDependency.enumerated() {
      self.statement("import option \(ProtoText.quoted(name));", at: [15, Int32(number)])
    }
  }

  // MARK: One declaration

  mutating func printDeclaration(at place: DeclarationPlace) {
    let (path, scope) = (place.path, place.scope)
    switch place.declaration {
    case .message(let message): self.printMessage(message, at: path, scope: scope)
    case .enumeration(let enumeration): self.printEnum(enumeration, at: path, scope: scope)
    case .service(let service): self.printService(service, at: path, scope: scope)
    case .method(let method): self.printMethod(method, at: path, scope: scope)
    case .value(let value): self.printValue(value, at: path, scope: scope)
    case .field(let field, let message):
      let types = MessageBody(message, named: scope)
      self.printField(field, at: path, scope: scope, types, isOneofMember: false)
    case .extension(let field):
      self.printExtensions([(field, path)], at: Array(path.dropLast()), scope: scope, self.scopeTypes(scope))
    }
  }

  /// The messages in which the group of an extension is looked up.
  private func scopeTypes(_ scope: String) -> MessageBody {
    self.index.message(scope).map { MessageBody($0, named: scope) }
      ?? MessageBody(self.file.messageType, named: scope)
  }
}
