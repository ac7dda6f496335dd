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
  var lines = ProtoLines()

  init(_ file: File, _ index: SymbolIndex) {
    self.file = file
    self.index = index
    self.locations = SourceLocations(file.sourceCodeInfo)
    self.names = TypeNames(index: index)
    self.options = OptionReader(index)
  }

  var text: String { self.lines.text }
  var isEditions: Bool { self.file.syntax == "editions" }

  /// Lines in braces.
  mutating func block(
    _ head: String,
    at location: SourceLocations.Location?,
    _ body: (inout ProtoPrinter) -> Void
  ) {
    let start = self.lines.open(head, at: location)
    body(&self)
    self.lines.close(from: start)
  }

  mutating func statement(_ line: String, at path: [Int32]) {
    self.lines.statement([line], at: self.locations.location(at: path))
  }

  // MARK: Files

  mutating func printFile() {
    let file = self.file
    if self.isEditions {
      self.statement("edition = \(ProtoText.quoted(file.edition.text));", at: self.editionPath)
    } else {
      let syntax = file.syntax.isEmpty ? "proto2" : file.syntax
      self.statement("syntax = \(ProtoText.quoted(syntax));", at: [12])
    }
    self.lines.separate()
    if !file.package.isEmpty {
      self.statement("package \(file.package);", at: [2])
      self.lines.separate()
    }
    self.printImports()
    self.lines.separate()
    self.printOptions(file.options, named: "FileOptions", at: [8], scope: file.package)
    self.lines.separate()
    self.printElements(self.elements.all(in: file), scope: file.package)
  }

  private var editionPath: [Int32] { self.locations.location(at: [14]) == nil ? [12] : [14] }

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

extension Google_Protobuf_Edition {
  fileprivate var text: String {
    switch self {
    case .proto2: "proto2"
    case .proto3: "proto3"
    case .edition2023: "2023"
    case .edition2024: "2024"
    case .edition2026: "2026"
    case .unstable: "UNSTABLE"
    default: "\(self.rawValue)"
    }
  }
}
