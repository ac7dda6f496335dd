public import Connect
public import NIOCore
internal import SwiftProtobuf

/// Types and services that are known at run time only. They come from a descriptor set of protoc or buf, or from a
/// server's reflection.
///
/// ```swift
/// let pool = try DescriptorPool(serializedFileDescriptorSet: bytes)
/// let method = try pool.method("/acme.v1.Users/Get")
/// var request = DynamicMessage(method.input)
/// try request.set("name", to: "ada")
/// let response = await client.unary(method.spec, request)
/// ```
public final class DescriptorPool: Sendable {
  let graph: SchemaGraph
  let metadata: SchemaGraph.Metadata
  /// The services of the set, in its order.
  public let services: [ServiceDescriptor]
  /// Why messages are not in the pool, by their names.
  private let unusable: [String: String]

  /// The types and services of a descriptor set. Messages with groups, which libprotobuf-c does not support, are not in
  /// the pool; nor are methods with such messages as input or output.
  ///
  /// - Parameter bytes: A `google.protobuf.FileDescriptorSet` with all imports, as
  ///   `protoc --include_imports --descriptor_set_out` writes.
  /// - Throws: A `ConnectError` with `invalid_argument` if it does not decode or lacks an import or a type. Also if a
  ///   full name in it takes more than 4,096 bytes, or all names together more than 16 MiB.
  public convenience init(serializedFileDescriptorSet bytes: ByteBuffer) throws {
    do {
      try self.init(Google_Protobuf_FileDescriptorSet(serializedBytes: Array(bytes.readableBytesView)))
    } catch let error as ConnectError {
      throw error
    } catch {
      throw ConnectError(
        code: .invalidArgument,
        message: "the \(bytes.readableBytes) bytes are no file descriptor set: \(error); "
          + "write one with protoc --include_imports --descriptor_set_out",
        exception: error
      )
    }
  }

  init(_ set: Google_Protobuf_FileDescriptorSet) throws(ConnectError) {
    let builder = try DescriptorBuilder(set)
    let graph = SchemaGraph(builder.descriptors, metadata: builder.metadata, memory: builder.memory)
    self.graph = graph
    self.metadata = builder.metadata
    self.unusable = builder.unusable
    var services: [ServiceDescriptor] = []
    for file in set.file {
      for proto in file.service {
        services.append(
          try ServiceDescriptor(proto, package: file.package, graph: graph, unusable: builder.unusable)
        )
      }
    }
    self.services = services
  }

  /// The full names of all messages, sorted.
  public var messageNames: [String] { self.graph.messages.keys.sorted() }

  /// Finds a message by its name.
  ///
  /// - Parameter name: With its package: `acme.v1.User`.
  /// - Throws: A `ConnectError` with `invalid_argument` if there is none.
  public func message(_ name: String) throws -> MessageDescriptor {
    guard let schema = self.graph.messages[name] else {
      throw ConnectError.misuse(self.unusable[name] ?? "the descriptor pool has no message \(name)")
    }
    return MessageDescriptor(graph: self.graph, schema: schema)
  }

  /// Finds a method by its path.
  ///
  /// - Parameter path: `/acme.v1.Users/Get`.
  /// - Throws: A `ConnectError` with `invalid_argument` if there is none.
  public func method(_ path: String) throws -> MethodDescriptor {
    for service in self.services {
      if let method = service.methods.first(where: { $0.path == path }) { return method }
      if let reason = service.unusableMethods[path] { throw ConnectError.misuse(reason) }
    }
    throw ConnectError.misuse("the descriptor pool has no method \(path)")
  }
}

/// A message type that is known at run time.
public struct MessageDescriptor: Sendable {
  let graph: SchemaGraph
  let schema: MessageSchema

  /// The full name, with the package.
  public var name: String { self.schema.name }

  /// The fields as the proto file names them, in the order of their numbers.
  public var fieldNames: [String] { self.schema.fields.map(\.name) }

  /// The oneofs as the proto file names them, in its order.
  public var oneofNames: [String] { self.schema.oneofs.map(\.name) }
}

/// A service that is known at run time.
public struct ServiceDescriptor: Sendable {
  /// The full name, with the package.
  public let name: String
  /// The methods that can be called, in the order of the proto file.
  public let methods: [MethodDescriptor]
  /// Why the other methods cannot be called, by path.
  let unusableMethods: [String: String]

  init(
    _ proto: Google_Protobuf_ServiceDescriptorProto,
    package: String,
    graph: SchemaGraph,
    unusable: [String: String]
  ) throws(ConnectError) {
    self.name = package.isEmpty ? proto.name : "\(package).\(proto.name)"
    var methods: [MethodDescriptor] = []
    var unusableMethods: [String: String] = [:]
    for method in proto.method {
      let types = [method.inputType, method.outputType].map {
        $0.hasPrefix(".") ? String($0.dropFirst()) : $0
      }
      if let reason = types.lazy.compactMap({ unusable[$0] }).first {
        unusableMethods["/\(self.name)/\(method.name)"] = reason
        continue
      }
      methods.append(try MethodDescriptor(method, service: self.name, graph: graph))
    }
    self.methods = methods
    self.unusableMethods = unusableMethods
  }
}

/// A method that is known at run time.
public struct MethodDescriptor: Sendable {
  /// The path, and how the method streams.
  public let info: MethodInfo
  /// The type of request messages.
  public let input: MessageDescriptor
  /// The type of response messages.
  public let output: MessageDescriptor

  /// The method's path on a server: `/package.Service/Method`.
  public var path: String { self.info.path }

  init(
    _ proto: Google_Protobuf_MethodDescriptorProto,
    service: String,
    graph: SchemaGraph
  ) throws(ConnectError) {
    func message(_ name: String) throws(ConnectError) -> MessageDescriptor {
      let key = name.hasPrefix(".") ? String(name.dropFirst()) : name
      guard let schema = graph.messages[key] else {
        throw .misuse("\(service).\(proto.name): the descriptor set lacks the type \(name)")
      }
      return MessageDescriptor(graph: graph, schema: schema)
    }
    self.input = try message(proto.inputType)
    self.output = try message(proto.outputType)
    let streamType: StreamType =
      switch (proto.clientStreaming, proto.serverStreaming) {
      case (false, false): .unary
      case (true, false): .clientStream
      case (false, true): .serverStream
      case (true, true): .bidirectionalStream
      }
    let idempotencyLevel: IdempotencyLevel =
      switch proto.options.idempotencyLevel {
      case .idempotencyUnknown: .unknown
      case .noSideEffects: .noSideEffects
      case .idempotent: .idempotent
      }
    var info = MethodInfo(
      path: "/\(service)/\(proto.name)",
      streamType: streamType,
      idempotencyLevel: idempotencyLevel
    )
    info.isDynamic = true
    self.info = info
  }
}
