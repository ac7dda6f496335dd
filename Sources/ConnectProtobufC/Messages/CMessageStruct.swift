internal import CProtobufC
public import Connect
public import NIOCore
internal import Synchronization

/// A struct that protoc-c made of a message. Generated code adds the conformance, with the names of both modules:
///
/// ```swift
/// extension AcmeStructs.Acme__V1__User: ConnectProtobufC.CMessageStruct {
///   public static let messageType = CMessageType<Self>(acme__v1__user__init, descriptors: acmeDescriptors)
/// }
/// ```
public protocol CMessageStruct: SendableMetatype {
  /// The struct's message type: a constant in generated code.
  static var messageType: CMessageType<Self> { get }
}

/// The properties of a protoc-c struct that this module needs.
public final class CMessageType<Struct>: Sendable {
  /// A constant of the C code.
  nonisolated(unsafe) let descriptor: MessageDescriptorPointer
  @usableFromInline var rawDescriptor: UnsafeRawPointer { UnsafeRawPointer(self.descriptor) }
  /// For decoding; never freed.
  let table: MessageTable
  private let descriptors: DescriptorSource?
  private let graph = Mutex<Result<SchemaGraph, ConnectError>?>(nil)

  /// The type of a struct, from protoc-c's code. For generated code.
  ///
  /// - Parameters:
  ///   - initialize: The `…__init` function of protoc-c. It is called once, for the descriptor that it writes.
  ///   - descriptors: The proto file's descriptors, which have what protoc-c leaves out: JSON names and which fields
  ///     are maps. Without them there is no JSON, and maps are lists of entries.
  public init(_ initialize: (UnsafeMutablePointer<Struct>) -> Void, descriptors: DescriptorSource? = nil) {
    let message = UnsafeMutablePointer<Struct>.allocate(capacity: 1)
    defer { message.deallocate() }
    initialize(message)
    // All of protoc-c's structs begin with a pointer to their descriptor.
    self.descriptor = UnsafeRawPointer(message).load(as: MessageDescriptorPointer.self)
    self.table = MessageTables.ofStructs.table(of: self.descriptor)
    self.descriptors = descriptors
  }

  /// The message's full name.
  public var name: String { self.descriptor.fullName }

  /// The descriptor with the fields by name; made at first use.
  func messageDescriptor() throws(ConnectError) -> MessageDescriptor {
    let pool = try self.descriptors?.pool()
    let result = self.graph.withLock { graph in
      let result = graph ?? self.makeGraph(from: pool)
      graph = result
      return result
    }
    let graph = try result.get()
    guard let schema = graph.messages[self.name] else { throw .misuse("\(self.name) has no descriptor") }
    return MessageDescriptor(graph: graph, schema: schema)
  }

  private func makeGraph(from pool: DescriptorPool?) -> Result<SchemaGraph, ConnectError> {
    let graph = SchemaGraph([self.descriptor], metadata: pool?.metadata, typesOfAny: pool?.graph)
    if let pool, let field = graph.fieldThatDiffers(from: pool.graph) {
      return .failure(.misuse("\(field): the struct is not what its descriptor set says"))
    }
    return .success(graph)
  }
}

/// The descriptor set of a proto file and its imports, in generated code; decoded at first use.
public final class DescriptorSource: Sendable {
  private let bytes: @Sendable () -> ByteBuffer?
  private let made = Mutex<Result<DescriptorPool, ConnectError>?>(nil)

  /// A source whose bytes are a string literal in the program.
  ///
  /// - Parameter base64: A serialized `google.protobuf.FileDescriptorSet` with all imports, in base64.
  public init(base64: StaticString) {
    self.bytes = { base64.withUTF8Buffer { Base64.decode(UnsafeRawBufferPointer($0)) } }
  }

  /// A source with bytes that the program provides.
  ///
  /// - Parameter bytes: A serialized `google.protobuf.FileDescriptorSet` with all imports.
  public init(_ bytes: ByteBuffer) {
    self.bytes = { bytes }
  }

  /// All types and services of the set, also for ``DynamicMessage``.
  ///
  /// - Throws: As ``DescriptorPool/init(serializedFileDescriptorSet:)``.
  public func pool() throws(ConnectError) -> DescriptorPool {
    let result = self.made.withLock { made in
      let result = made ?? self.make()
      made = result
      return result
    }
    return try result.get()
  }

  private func make() -> Result<DescriptorPool, ConnectError> {
    guard let bytes = self.bytes() else { return .failure(.misuse("the descriptor set is not base64")) }
    do {
      return .success(try DescriptorPool(serializedFileDescriptorSet: bytes))
    } catch {
      return .failure(ConnectError(error, code: .invalidArgument))
    }
  }
}
