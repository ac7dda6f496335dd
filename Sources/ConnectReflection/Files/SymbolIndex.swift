internal import Connect
internal import SwiftProtobuf

/// Finds the declarations of a set of files by their full names.
struct SymbolIndex: Sendable {
  typealias File = Google_Protobuf_FileDescriptorProto
  typealias Message = Google_Protobuf_DescriptorProto

  /// In bytes: the total size of full names of messages, enums, services and extensions. A long package name, or a long
  /// name of a message with nested types, is part of many full names.
  private static let mostNames = 64 * 1024 * 1024
  private static let longestName = 4096

  private let files: [File]
  private var fileNumbers: [String: Int] = [:]
  private var places: [String: DeclarationPlace] = [:]
  /// The names of all members of a package or a message, by its full name.
  private var members: [String: Set<String>] = [:]
  /// The full names of the extensions of each message, by their numbers.
  private var extensions: [String: [Int32: String]] = [:]
  private(set) var serviceNames: [String] = []
  private var bytesOfNames = 0

  init(_ files: [File]) throws(ConnectError) {
    self.files = files
    for (number, file) in files.enumerated() {
      self.fileNumbers[file.name] = number
      try self.addPackage(file.package, of: file)
      for (place, proto) in file.messageType.enumerated() {
        try self.add(proto, in: file.package, of: number, [4, Int32(place)])
      }
      for (place, proto) in file.enumType.enumerated() {
        try self.add(proto, in: file.package, of: number, [5, Int32(place)])
      }
      for (place, proto) in file.service.enumerated() {
        let name = try self.add(.service(proto), proto.name, in: file.package, of: number, [6, Int32(place)])
        self.serviceNames.append(name)
        for method in proto.method { try self.addMember(method.name, of: name) }
      }
      for (place, proto) in file.extension.enumerated() {
        try self.addExtension(proto, in: file.package, of: number, [7, Int32(place)])
      }
    }
  }

  // MARK: Adding

  private mutating func addPackage(_ package: String, of file: File) throws(ConnectError) {
    guard package.utf8.count <= Self.longestName else { throw Self.tooLong(package) }
    var scope = ""
    for part in package.isEmpty ? [] : package.split(separator: ".", omittingEmptySubsequences: false) {
      try self.addMember(String(part), of: scope)
      scope = scope.isEmpty ? String(part) : "\(scope).\(part)"
    }
  }

  private mutating func addMember(_ name: String, of scope: String) throws(ConnectError) {
    guard ProtoText.isIdentifier(name) else {
      throw ConnectError(
        code: .invalidArgument,
        message: "\(ProtoText.quoted(String(name.prefix(100)))) in '\(scope)' is no name"
      )
    }
    self.members[scope, default: []].insert(name)
  }

  @discardableResult
  private mutating func add(
    _ declaration: Declaration,
    _ name: String,
    in scope: String,
    of file: Int,
    _ path: [Int32]
  ) throws(ConnectError) -> String {
    try self.addMember(name, of: scope)
    let fullName = scope.isEmpty ? name : "\(scope).\(name)"
    guard fullName.utf8.count <= Self.longestName else { throw Self.tooLong(fullName) }
    self.bytesOfNames += fullName.utf8.count
    guard self.bytesOfNames <= Self.mostNames else {
      throw ConnectError(
        code: .resourceExhausted,
        message: "the names in the proto files take more than \(Self.mostNames) bytes"
      )
    }
    if self.places[fullName] == nil {
      self.places[fullName] = DeclarationPlace(
        declaration: declaration,
        file: file,
        path: path,
        scope: scope
      )
    }
    return fullName
  }

  private mutating func add(
    _ proto: Message,
    in scope: String,
    of file: Int,
    _ path: [Int32]
  ) throws(ConnectError) {
    let name = try self.add(.message(proto), proto.name, in: scope, of: file, path)
    for field in proto.field { try self.addMember(field.name, of: name) }
    for oneof in proto.oneofDecl { try self.addMember(oneof.name, of: name) }
    for (place, inner) in proto.nestedType.enumerated() {
      try self.add(inner, in: name, of: file, path + [3, Int32(place)])
    }
    for (place, inner) in proto.enumType.enumerated() {
      try self.add(inner, in: name, of: file, path + [4, Int32(place)])
    }
    for (place, inner) in proto.extension.enumerated() {
      try self.addExtension(inner, in: name, of: file, path + [6, Int32(place)])
    }
  }

  private mutating func add(
    _ proto: Google_Protobuf_EnumDescriptorProto,
    in scope: String,
    of file: Int,
    _ path: [Int32]
  ) throws(ConnectError) {
    try self.add(.enumeration(proto), proto.name, in: scope, of: file, path)
    // As in C++, values are in the scope around the enum.
    for value in proto.value { try self.addMember(value.name, of: scope) }
  }

  private mutating func addExtension(
    _ proto: Google_Protobuf_FieldDescriptorProto,
    in scope: String,
    of file: Int,
    _ path: [Int32]
  ) throws(ConnectError) {
    let name = try self.add(.extension(proto), proto.name, in: scope, of: file, path)
    self.extensions[ProtoText.withoutDot(proto.extendee), default: [:]][proto.number] = name
  }

  private static func tooLong(_ name: String) -> ConnectError {
    ConnectError(
      code: .invalidArgument,
      message: "a full name takes more than \(Self.longestName) bytes: \(name.prefix(100))…"
    )
  }

  // MARK: Finding

  /// The full name with dots only: a method may also be written as in a path.
  static func name(of symbol: String) -> String {
    var name = symbol[...]
    while let first = name.first, first == "/" || first == "." { name.removeFirst() }
    return String(name.map { $0 == "/" ? "." : $0 })
  }

  func file(named name: String) -> File? { self.fileNumbers[name].map { self.files[$0] } }

  func files(ofPackage package: String) -> [File] {
    self.files.filter { $0.package == package && package != "" }
  }

  func place(of name: String) -> DeclarationPlace? {
    if let place = self.places[name] { return place }
    guard let dot = name.lastIndex(of: "."), let outer = self.places[String(name[..<dot])] else { return nil }
    let last = name[name.index(after: dot)...]
    func place(_ declaration: Declaration, _ kind: Int32, _ number: Int) -> DeclarationPlace {
      DeclarationPlace(
        declaration: declaration,
        file: outer.file,
        path: outer.path + [kind, Int32(number)],
        scope: String(name[..<dot])
      )
    }
    switch outer.declaration {
    case .message(let proto):
      guard let number = proto.field.firstIndex(where: { $0.name == last }) else { return nil }
      return place(.field(proto.field[number], of: proto), 2, number)
    case .enumeration(let proto):
      guard let number = proto.value.firstIndex(where: { $0.name == last }) else { return nil }
      return place(.value(proto.value[number]), 2, number)
    case .service(let proto):
      guard let number = proto.method.firstIndex(where: { $0.name == last }) else { return nil }
      return place(.method(proto.method[number]), 2, number)
    case .extension, .field, .method, .value:
      return nil
    }
  }

  /// The full names that a short name may stand for: itself, else those that end with it behind a dot; sorted. Members of
  /// types are found with the names of their types.
  func fullNames(of name: String) -> [String] {
    if self.place(of: name) != nil { return [name] }
    let found = self.places.keys.filter { $0.hasSuffix(".\(name)") }
    guard found.isEmpty, let dot = name.lastIndex(of: ".") else { return found.sorted() }
    let outer = name[..<dot]
    return self.places.keys.filter { $0.hasSuffix(".\(outer)") }.map { "\($0)\(name[dot...])" }
      .filter { self.place(of: $0) != nil }.sorted()
  }

  func message(_ name: String) -> Message? {
    if case .message(let proto) = self.places[name]?.declaration { proto } else { nil }
  }

  func enumeration(_ name: String) -> Google_Protobuf_EnumDescriptorProto? {
    if case .enumeration(let proto) = self.places[name]?.declaration { proto } else { nil }
  }

  /// The extension of a message with this number, and its full name.
  func `extension`(
    of message: String,
    number: Int32
  ) -> (name: String, field: Google_Protobuf_FieldDescriptorProto)? {
    guard let name = self.extensions[message]?[number],
      case .extension(let field) = self.places[name]?.declaration
    else { return nil }
    return (name, field)
  }

  /// Whether a package, message or file scope has a member of this name.
  func has(_ name: Substring, in scope: Substring) -> Bool {
    self.members[String(scope)]?.contains(String(name)) ?? false
  }

  // MARK: Errors

  func unknown(_ symbol: String) -> ConnectError {
    let name = Self.name(of: symbol)
    var candidates = Array(self.places.keys)
    // The method is wrong, but the service exists.
    if let dot = name.lastIndex(of: "."), let outer = self.places[String(name[..<dot])] {
      switch outer.declaration {
      case .service(let proto): candidates += proto.method.map { "\(name[..<dot]).\($0.name)" }
      case .message(let proto): candidates += proto.field.map { "\(name[..<dot]).\($0.name)" }
      case .enumeration(let proto): candidates += proto.value.map { "\(name[..<dot]).\($0.name)" }
      case .extension, .field, .method, .value: break
      }
    }
    return NearNames.unknown("no \(symbol) in the proto files", near: NearNames.near(name, in: candidates))
  }

  func unknownFile(_ name: String) -> ConnectError {
    NearNames.unknown(
      "no file \(name) among the proto files",
      near: NearNames.near(name, in: self.files.map(\.name))
    )
  }
}
