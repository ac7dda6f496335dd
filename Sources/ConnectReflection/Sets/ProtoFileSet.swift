internal import Connect
public import ConnectProtobufC
public import NIOCore
internal import SwiftProtobuf

/// Proto files and their imports as descriptors: from a server's reflection, a descriptor set, or a compiler. Files of
/// `google/protobuf` that the others import, and that are not there, are supplied.
public struct ProtoFileSet: Sendable {
  /// The files; imports come before the files that need them.
  let files: [Google_Protobuf_FileDescriptorProto]
  let index: SymbolIndex

  /// The files of a descriptor set, such as one that protoc or buf has written.
  ///
  /// - Parameter bytes: A `google.protobuf.FileDescriptorSet`, as `protoc --include_imports --include_source_info
  ///   --descriptor_set_out` and `buf build --as-file-descriptor-set` write. Without source info there are no comments.
  /// - Throws: A `ConnectError` with `invalid_argument` if the set does not decode, has invalid names, has two
  ///   different files of one name, or has circular imports.
  public init(serializedFileDescriptorSet bytes: ByteBuffer) throws {
    let set: Google_Protobuf_FileDescriptorSet
    do {
      set = try .init(serializedBytes: Array(bytes.readableBytesView), partial: true)
    } catch {
      throw ConnectError(
        code: .invalidArgument,
        message: "no file descriptor set: \(error)",
        exception: error
      )
    }
    guard !set.file.isEmpty else {
      throw ConnectError(code: .invalidArgument, message: "the file descriptor set has no files")
    }
    try self.init(set.file)
  }

  init(_ files: [Google_Protobuf_FileDescriptorProto]) throws(ConnectError) {
    self.files = try FileOrder.importsFirst(MissingImports.supplied(files))
    self.index = try SymbolIndex(self.files)
  }

  /// Compiles proto files with the installed `protoc`, or with `buf` if there is no protoc.
  ///
  /// - Parameters:
  ///   - files: Their paths.
  ///   - importPaths: The folders in which imports are looked up. Each file must be in one of them. By default: the
  ///     working directory, and the folders of files outside of it.
  /// - Throws: A `ConnectError`. `failed_precondition`: there is no compiler; the message says what to install.
  ///   `invalid_argument`: the compiler's messages.
  public static func compile(_ files: [String], importPaths: [String] = []) async throws -> ProtoFileSet {
    try ProtoFileSet(
      serializedFileDescriptorSet: try await ProtoCompiler.find().compile(files, importPaths: importPaths)
    )
  }

  /// These files, and those of `other` whose names are not among these.
  ///
  /// - Throws: A `ConnectError` with `invalid_argument` if the files do not go together.
  package func adding(_ other: ProtoFileSet) throws -> ProtoFileSet {
    let names = Set(self.fileNames)
    return try ProtoFileSet(self.files + other.files.filter { !names.contains($0.name) })
  }

  /// The names of the files, as imports name them. Imports come before the files that need them.
  public var fileNames: [String] { self.files.map(\.name) }

  /// The full names of all services, sorted.
  public var serviceNames: [String] { self.index.serviceNames.sorted() }

  /// The types and services, to make calls with. A file that only options need may be missing.
  ///
  /// - Throws: A `ConnectError` with `invalid_argument` if an import with a type is missing, and as for `DescriptorPool`.
  public func descriptorPool() throws -> DescriptorPool {
    if let need = MissingImports.firstNeed(in: self.files) {
      throw ConnectError(
        code: .invalidArgument,
        message: "\(need.importer) imports \(need.name) for the type \(need.type), which the set lacks; "
          + "make the set with its imports (protoc --include_imports)"
      )
    }
    let files = MissingImports.removed(from: self.files)
    return try DescriptorPool(serializedFileDescriptorSet: try Self.serialized(files))
  }

  /// A `google.protobuf.FileDescriptorSet`; imports come before the files that need them.
  public func serialized() throws -> ByteBuffer { try Self.serialized(self.files) }

  private static func serialized(_ files: [Google_Protobuf_FileDescriptorProto]) throws -> ByteBuffer {
    let set = Google_Protobuf_FileDescriptorSet.with { $0.file = files }
    return ByteBuffer(bytes: try set.serializedBytes(partial: true) as [UInt8])
  }
}

// MARK: - For people

extension ProtoFileSet {
  /// The proto source, with comments.
  ///
  /// - Parameter symbol: The name of a file, or the full name of a package, service, method (also as
  ///   `acme.v1.Users/Get`), message, enum, extension, field or enum value.
  /// - Throws: A `ConnectError` with `not_found` that suggests similar names.
  public func source(of symbol: String) throws -> String {
    if let file = self.index.file(named: symbol) { return self.source(of: file) }
    let name = SymbolIndex.name(of: symbol)
    if let place = self.index.place(of: name) {
      var printer = ProtoPrinter(self.files[place.file], self.index)
      printer.printDeclaration(at: place)
      return printer.text
    }
    let files = self.index.files(ofPackage: name)
    guard !files.isEmpty else { throw self.index.unknown(symbol) }
    return self.source(of: files)
  }

  /// The proto source of a whole file, with comments.
  ///
  /// - Throws: A `ConnectError` with `not_found` that suggests similar names.
  public func source(ofFile name: String) throws -> String {
    guard let file = self.index.file(named: name) else { throw self.index.unknownFile(name) }
    return self.source(of: file)
  }

  private func source(of file: Google_Protobuf_FileDescriptorProto) -> String {
    var printer = ProtoPrinter(file, self.index)
    printer.printFile()
    return printer.text
  }

  /// The descriptor of a symbol, as for ``source(of:)``, in protobuf's JSON. A file has no source info, and a package
  /// is a set of files. Options that extensions define are left out.
  ///
  /// - Throws: A `ConnectError` with `not_found` that suggests similar names.
  public func json(of symbol: String) throws -> String {
    JSONValue.indented(try self.descriptor(of: symbol).jsonString())
  }

  private func descriptor(of symbol: String) throws -> any SwiftProtobuf.Message {
    if let file = self.index.file(named: symbol) { return Self.withoutSourceInfo(file) }
    let name = SymbolIndex.name(of: symbol)
    if let place = self.index.place(of: name) { return place.declaration.descriptor }
    let files = self.index.files(ofPackage: name)
    guard !files.isEmpty else { throw self.index.unknown(symbol) }
    return self.fileDescriptorSet(files)
  }

  /// The full names that a symbol may stand for: itself, or those that end with it, as proto source has short names.
  package func fullNames(of symbol: String) -> [String] {
    self.index.fullNames(of: SymbolIndex.name(of: symbol))
  }

  /// The proto source of all files but those of `google/protobuf`, unless there are no others.
  package func sourceOfAll() -> String { self.source(of: self.ownFiles) }

  /// The descriptors of the same files, in protobuf's JSON.
  package func jsonOfAll() throws -> String {
    JSONValue.indented(try self.fileDescriptorSet(self.ownFiles).jsonString())
  }

  private var ownFiles: [Google_Protobuf_FileDescriptorProto] {
    let own = self.files.filter { !$0.name.hasPrefix("google/protobuf/") }
    return own.isEmpty ? self.files : own
  }

  private func source(of files: [Google_Protobuf_FileDescriptorProto]) -> String {
    files.map { "// \(ProtoText.comment($0.name))\n\n\(self.source(of: $0))" }.joined(separator: "\n")
  }

  private func fileDescriptorSet(
    _ files: [Google_Protobuf_FileDescriptorProto]
  ) -> Google_Protobuf_FileDescriptorSet {
    .with { $0.file = files.map(Self.withoutSourceInfo) }
  }

  private static func withoutSourceInfo(
    _ file: Google_Protobuf_FileDescriptorProto
  ) -> Google_Protobuf_FileDescriptorProto {
    var file = file
    file.clearSourceCodeInfo()
    return file
  }
}
