internal import CProtobufC
internal import Connect
public import NIOCore

/// A message in the struct that protoc-c made for it, with all its memory.
///
/// A value type: a copy shares the memory until one of the two is changed. Fields are read by their names in C:
///
/// ```swift
/// var request = CMessage<Acme__V1__GetRequest>()
/// try request.update { fields, arena in
///   fields.id = 5
///   fields.name = try arena.string("ada")
/// }
/// let response = try await client.unary(method, request).get()
/// print(response.user?.name ?? "")
/// ```
@dynamicMemberLookup
public struct CMessage<Struct: CMessageStruct>: Sendable {
  @usableFromInline private(set) var handle: MessageHandle

  /// An empty message.
  public init() {
    self.handle = MessageHandle(Struct.messageType.descriptor, graph: nil)
  }

  @usableFromInline
  init(handle: MessageHandle) {
    self.handle = handle
  }

  // MARK: Encodings

  /// The message in protobuf's binary encoding.
  ///
  /// - Throws: A `ConnectError` with `internal` that names the type and, where possible, the field; with
  ///   `resource_exhausted` past a limit.
  public init(serializedBytes bytes: ByteBuffer, limits: DecodingLimits = .defaults) throws {
    self.handle = try bytes.withUnsafeReadableBytes {
      try BinaryCoding.decode($0, of: Struct.messageType.table, graph: nil, limits: limits)
    }
  }

  /// Protobuf's binary encoding.
  ///
  /// - Parameter deterministic: Whether equal messages give equal bytes. This sorts the entries of maps, if the type's
  ///   ``CMessageType`` knows the maps.
  /// - Throws: A `ConnectError` with `internal` if the struct lacks a required string or message, or if it has
  ///   something that cannot be encoded: for example a null pointer in an array. (C cannot tell whether required
  ///   numbers and bytes are set.)
  public func serializedBytes(deterministic: Bool = false) throws -> ByteBuffer {
    guard deterministic else { return try BinaryCoding.encode(self.handle, of: Struct.messageType.table) }
    return try self.dynamic().serializedBytes(deterministic: true)
  }

  // MARK: C

  /// A copy of the message at `message`, with everything it contains.
  ///
  /// - Throws: A `ConnectError` if it is not a message of this type, or if it is incomplete.
  public init(copying message: UnsafePointer<Struct>) throws {
    try StructCheck(maximumDepth: DecodingLimits.defaults.maximumDepth).check(
      MessagePointer(reading: message),
      of: Struct.messageType.table
    )
    self.handle = MessageHandle(copying: message, graph: nil, isChecked: true)
  }

  /// The message at `message` itself, without a copy. The message must stay valid and unchanged while this value or a
  /// copy of it exists. That is until the call that sends it has ended, and as long as an interceptor keeps it.
  /// Changing this value makes a copy.
  ///
  /// - Throws: A `ConnectError` if it is not a message of this type, or if it is incomplete.
  public init(unsafeBorrowing message: UnsafePointer<Struct>) throws {
    try StructCheck(maximumDepth: DecodingLimits.defaults.maximumDepth).check(
      MessagePointer(reading: message),
      of: Struct.messageType.table
    )
    self.handle = MessageHandle(borrowing: message, graph: nil)
  }

  /// The C struct, also for fields that have the name of a member of this type. Its pointers are valid only as long as
  /// this value or a copy of it. Keep the value with `withExtendedLifetime(_:_:)`, or use ``withUnsafePointer(_:)``.
  @inlinable public var pointee: Struct { self.withUnsafePointer { $0.pointee } }

  /// Calls `body` with the struct, to read it or pass it to C. The pointer is valid until `body` returns.
  @inlinable
  public func withUnsafePointer<Result>(_ body: (UnsafePointer<Struct>) throws -> Result) rethrows -> Result {
    try withExtendedLifetime(self.handle.storage) {
      try body(UnsafePointer(self.handle.pointer.assumingMemoryBound(to: Struct.self)))
    }
  }

  /// A copy for C code, allocated with `malloc`. The C code frees it with the protoc-c function whose name ends with
  /// `__free_unpacked`.
  public func copyForC() throws -> UnsafeMutablePointer<Struct> {
    let bytes = try BinaryCoding.encode(self.handle, of: Struct.messageType.table)
    let message = bytes.withUnsafeReadableBytes { bytes in
      protobuf_c_message_unpack(
        self.handle.descriptor,
        nil,
        bytes.count,
        bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
      )
    }
    guard let message else {
      throw ConnectError(code: .resourceExhausted, message: "no memory for a \(Struct.messageType.name)")
    }
    return UnsafeMutableRawPointer(message).assumingMemoryBound(to: Struct.self)
  }

  /// Calls `body` with the fields, to change them. Pointers must come from the arena, or point to C constants, which
  /// live as long as the program. C's rules hold: an array has as many values as its count says, and the case of a
  /// oneof says which member is set.
  ///
  /// The safe alternative, with field names: ``set(_:to:)``.
  public mutating func update<Result>(_ body: (inout Struct, CMessageArena) throws -> Result) rethrows
    -> Result
  {
    self.handle.makeUnique()
    self.handle.storage.isChecked = false
    return try withExtendedLifetime(self.handle.storage) {
      try body(
        &self.handle.pointer.assumingMemoryBound(to: Struct.self).pointee,
        CMessageArena(storage: self.handle.storage)
      )
    }
  }

  // MARK: Fields by name

  /// The same message with access to fields by name or number; shares the memory.
  ///
  /// - Throws: A `ConnectError` with `invalid_argument` if the type's descriptor set cannot be used.
  public func dynamic() throws -> DynamicMessage {
    DynamicMessage(descriptor: try Struct.messageType.messageDescriptor(), handle: self.handle)
  }

  /// The struct of a dynamic message. It shares the memory of `message` until one of the two is changed.
  ///
  /// - Throws: A `ConnectError` with `invalid_argument` if `message` is of another type, or of another descriptor
  ///   pool.
  public init(_ message: DynamicMessage) throws {
    guard message.handle.descriptor == Struct.messageType.descriptor else {
      throw ConnectError.misuse("a \(message.descriptor.name) is no struct \(Struct.self)")
    }
    self.handle = message.handle
  }

  /// Sets a field, found by its name in the proto file or by its number; see ``DynamicMessage/set(_:to:)``.
  public mutating func set(_ key: some FieldKey, to value: FieldValue) throws {
    var message = try self.dynamic()
    // Drops this reference, so that the memory has one owner while it is changed.
    self.handle = MessageHandle(Struct.messageType.descriptor, graph: nil)
    defer { self.handle = message.handle }
    try message.set(key, to: value)
  }
}

/// Two messages are equal if they have equal bytes; the order of map entries does not matter. See ``DynamicMessage``.
extension CMessage: Hashable {
  public static func == (left: CMessage, right: CMessage) -> Bool {
    guard left.handle.pointer != right.handle.pointer else { return true }
    guard let left = try? left.dynamic(), let right = try? right.dynamic() else { return false }
    return left == right
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(try? self.dynamic())
  }
}
