internal import Connect
public import ConnectProtobufC
public import NIOCore

/// Proto files, with what they import, as descriptors: from a server's reflection, a descriptor set, or a compiler.
public struct ProtoFileSet: Sendable {
  /// - Parameter bytes: A `google.protobuf.FileDescriptorSet`, as `protoc --include_imports --include_source_info
  ///   --descriptor_set_out` and `buf build --as-file-descriptor-set` write. Without source info there are no comments.
  /// - Throws: A ``ConnectError`` with `invalid_argument` if it does not decode, or has names that are none.
  public init(serializedFileDescriptorSet bytes: ByteBuffer) throws {
    throw ConnectError(code: .unimplemented)
  }

  /// Has proto files compiled by the machine's `protoc`, or by `buf` if there is no protoc.
  ///
  /// - Parameters:
  ///   - files: Their paths.
  ///   - importPaths: The folders in which imports are looked for. One of them has to contain each of the files. If there
  ///     are none: the working directory, and the folders of files outside of it.
  /// - Throws: A ``ConnectError`` with `failed_precondition` that says what to install if there is no compiler, or with
  ///   `invalid_argument` and the compiler's messages.
  public static func compile(_ files: [String], importPaths: [String] = []) async throws -> ProtoFileSet {
    throw ConnectError(code: .unimplemented)
  }

  /// The names of the files, as imports name them, in the order of the set.
  public var fileNames: [String] { [] }

  /// The full names of all services, sorted.
  public var serviceNames: [String] { [] }

  /// The types and services, to make calls with.
  ///
  /// - Throws: A ``ConnectError`` with `invalid_argument` if an import is missing, as `DescriptorPool` does.
  public func descriptorPool() throws -> DescriptorPool {
    throw ConnectError(code: .unimplemented)
  }

  /// The proto source, with comments.
  ///
  /// - Parameter symbol: The full name of a service, method (also as `acme.v1.Users/Get`), message, enum, extension, field
  ///   or enum value, a package, or the name of a file.
  /// - Throws: A ``ConnectError`` with `not_found` that names near names.
  public func source(of symbol: String) throws -> String {
    throw ConnectError(code: .unimplemented)
  }

  /// The proto source of a whole file, with comments.
  ///
  /// - Throws: A ``ConnectError`` with `not_found` that names near names.
  public func source(ofFile name: String) throws -> String {
    throw ConnectError(code: .unimplemented)
  }

  /// The descriptor of a symbol, as for ``source(of:)``, in protobuf's JSON; of a file without its source info.
  ///
  /// - Throws: A ``ConnectError`` with `not_found` that names near names.
  public func json(of symbol: String) throws -> String {
    throw ConnectError(code: .unimplemented)
  }

  /// A `google.protobuf.FileDescriptorSet`, imports in front of the files that need them.
  public func serialized() throws -> ByteBuffer {
    throw ConnectError(code: .unimplemented)
  }
}
