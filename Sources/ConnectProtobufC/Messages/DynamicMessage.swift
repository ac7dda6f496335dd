internal import Connect
public import NIOCore

/// A message whose type is known at run time only, or a protoc-c struct with access to fields by name.
///
/// A value type: a copy shares the memory until one of the two is changed. Memory of replaced values is freed with the
/// message.
public struct DynamicMessage: Sendable {
  /// The type of the message. It never changes.
  public let descriptor: MessageDescriptor
  private(set) var handle: MessageHandle

  /// An empty message.
  public init(_ descriptor: MessageDescriptor) {
    self.descriptor = descriptor
    self.handle = MessageHandle(descriptor.schema.descriptor, graph: descriptor.graph)
  }

  init(descriptor: MessageDescriptor, handle: MessageHandle) {
    self.descriptor = descriptor
    self.handle = handle
  }

  // MARK: Encodings

  /// The message in protobuf's binary encoding.
  ///
  /// - Throws: A `ConnectError` with `internal`, or with `resource_exhausted` past a limit.
  public init(
    _ descriptor: MessageDescriptor,
    serializedBytes bytes: ByteBuffer,
    limits: DecodingLimits = .defaults
  ) throws {
    self.descriptor = descriptor
    self.handle = try bytes.withUnsafeReadableBytes {
      try BinaryCoding.decode($0, of: descriptor.schema.table, graph: descriptor.graph, limits: limits)
    }
  }

  /// Protobuf's binary encoding.
  ///
  /// - Parameter deterministic: Whether equal messages give equal bytes. This sorts the entries of maps.
  /// - Throws: A `ConnectError` with `internal` that names a missing required field.
  public func serializedBytes(deterministic: Bool = false) throws -> ByteBuffer {
    try self.encoded(deterministic: deterministic, isPartial: false)
  }

  private func encoded(deterministic: Bool, isPartial: Bool) throws -> ByteBuffer {
    let schema = self.descriptor.schema
    guard deterministic, schema.containsMaps else {
      return try BinaryCoding.encode(self.handle, of: schema.table, isPartial: isPartial)
    }
    try StructCheck.check(self.handle, of: schema.table)
    var sorted = self.handle
    sorted.makeUnique()
    MapOrder.sortMaps(in: sorted.message, of: schema)
    return try BinaryCoding.encode(sorted, of: schema.table, isPartial: isPartial)
  }

  // MARK: Fields

  /// Whether the field is present: set, if it has presence; else, not zero and not empty.
  ///
  /// - Throws: A `ConnectError` with `invalid_argument` if there is no such field.
  public func has(_ key: some FieldKey) throws -> Bool {
    self.handle.message.has(try self.field(key))
  }

  /// The field's value; its default if it is absent.
  ///
  /// - Throws: A `ConnectError` with `invalid_argument` if there is no such field.
  public func value(of key: some FieldKey) throws -> FieldValue {
    self.value(of: try self.field(key))
  }

  /// Calls `body` with the content of a string or bytes field.
  func withUnsafeBytes<Result>(
    of key: some FieldKey,
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    let field = try self.field(key)
    guard !field.isRepeated, field.kind == .string || field.kind == .bytes else {
      throw ConnectError.misuse("\(self.descriptor.name).\(field.name) is no string and no bytes")
    }
    return try withExtendedLifetime(self.handle.storage) {
      let message = self.handle.message
      let isThere = !field.isOneofMember || message.isSelected(field)
      return try body(
        isThere ? message.place(of: field).bytes : UnsafeRawBufferPointer(start: nil, count: 0)
      )
    }
  }

  /// The name of an enum field's value; nil if the number has no name.
  ///
  /// - Throws: A `ConnectError` with `invalid_argument` if there is no such field, or if it is not a single enum.
  public func enumName(of key: some FieldKey) throws -> String? {
    let field = try self.field(key)
    guard case .enumeration(let number) = self.value(of: field), let type = field.enumeration else {
      throw ConnectError.misuse("\(self.descriptor.name).\(field.name) is no enum")
    }
    return type.names[number]
  }

  /// The name of the field that is set in a oneof; nil if none is set.
  ///
  /// - Throws: A `ConnectError` with `invalid_argument` if there is no such oneof.
  public func member(ofOneof name: String) throws -> String? {
    guard let oneof = self.descriptor.schema.oneofs.first(where: { $0.name == name }) else {
      throw ConnectError.misuse("\(self.descriptor.name) has no oneof \(name)")
    }
    return oneof.members.first { self.handle.message.has($0) }?.name
  }

  /// Sets the field to `value`. An enum takes a number or a name. A `float` takes the nearest number that it can
  /// represent.
  ///
  /// - Throws: A `ConnectError` with `invalid_argument` if there is no such field, or if the value is not of its type
  ///   or range. The message is then unchanged.
  public mutating func set(_ key: some FieldKey, to value: FieldValue) throws {
    let field = try self.field(key)
    // Checks before anything is copied or changed.
    try FieldWriter.check(value, for: field, in: self.descriptor)
    self.handle.makeUnique()
    FieldWriter.write(value, to: field, of: self.handle)
  }

  /// Changes the field's message; starts with an empty message if the field is absent.
  ///
  /// - Throws: What `body` throws, and a `ConnectError` with `invalid_argument` if the field is not a message field.
  public mutating func update(_ key: some FieldKey, _ body: (inout DynamicMessage) throws -> Void) throws {
    let field = try self.field(key)
    guard case .message(var inner) = self.value(of: field) else {
      throw ConnectError.misuse("\(self.descriptor.name).\(field.name) is no message")
    }
    try body(&inner)
    try FieldWriter.check(.message(inner), for: field, in: self.descriptor)
    self.handle.makeUnique()
    FieldWriter.write(.message(inner), to: field, of: self.handle)
  }

  /// Removes the field's value.
  ///
  /// - Throws: A `ConnectError` with `invalid_argument` if there is no such field.
  public mutating func clear(_ key: some FieldKey) throws {
    let field = try self.field(key)
    self.handle.makeUnique()
    self.handle.message.clear(field)
  }

  private func field(_ key: some FieldKey) throws -> FieldSchema {
    // A user-defined key may have found a field of another type.
    guard let found = key.find(in: self.descriptor), found.message === self.descriptor.schema else {
      throw ConnectError.misuse("\(self.descriptor.name) has no field \(key)")
    }
    return found.field
  }
}

// MARK: Reading

extension DynamicMessage {
  func value(of field: FieldSchema) -> FieldValue {
    let message = self.handle.message
    if field.isRepeated {
      let places = message.elements(of: field)
      guard field.isMap, let entry = field.message else {
        return .list(places.map { self.value(at: $0) })
      }
      let pairs = places.compactMap { place -> (FieldValue, FieldValue)? in
        guard let pair = place.checkedMessage else { return nil }
        let message = self.inner(pair, of: entry)
        guard let key = entry.field(number: 1), let value = entry.field(number: 2) else { return nil }
        return (message.value(of: key), message.value(of: value))
      }
      return .map(Dictionary(pairs) { _, last in last })
    }
    if field.isOneofMember, !message.isSelected(field) { return self.zero(of: field) }
    return self.value(at: message.place(of: field))
  }

  private func value(at place: FieldPlace) -> FieldValue {
    let field = place.field
    switch field.kind {
    case .bool: return .bool(place.load(as: Int32.self) != 0)
    case .int32, .sint32, .sfixed32: return .int(Int64(place.load(as: Int32.self)))
    case .int64, .sint64, .sfixed64: return .int(place.load(as: Int64.self))
    case .uint32, .fixed32: return .uint(UInt64(place.load(as: UInt32.self)))
    case .uint64, .fixed64: return .uint(place.load(as: UInt64.self))
    case .float: return .double(Double(place.load(as: Float.self)))
    case .double: return .double(place.load(as: Double.self))
    case .enumeration: return .enumeration(place.load(as: Int32.self))
    case .string: return .string(place.string)
    case .bytes: return .bytes(ByteBuffer(bytes: place.bytes))
    case .message:
      guard let message = place.checkedMessage, let schema = field.message else {
        return self.zero(of: field)
      }
      return .message(self.inner(message, of: schema))
    }
  }

  /// The value of an absent field.
  private func zero(of field: FieldSchema) -> FieldValue {
    switch field.kind {
    case .bool: return .bool(false)
    case .int32, .sint32, .sfixed32, .int64, .sint64, .sfixed64: return .int(0)
    case .uint32, .fixed32, .uint64, .fixed64: return .uint(0)
    case .float, .double: return .double(0)
    case .enumeration: return .enumeration(field.enumeration?.firstNumber ?? 0)
    case .string: return .string("")
    case .bytes: return .bytes(ByteBuffer())
    case .message:
      guard let schema = field.message else { return .bytes(ByteBuffer()) }
      return .message(DynamicMessage(MessageDescriptor(graph: self.descriptor.graph, schema: schema)))
    }
  }

  private func inner(_ message: MessagePointer, of schema: MessageSchema) -> DynamicMessage {
    DynamicMessage(
      descriptor: MessageDescriptor(graph: self.descriptor.graph, schema: schema),
      handle: self.handle.child(message)
    )
  }
}

/// Two messages are equal if they have the same type and equal bytes; the order of map entries does not matter. Missing
/// required fields count as zeros. A message that cannot be encoded is equal only to copies that share its memory.
extension DynamicMessage: Hashable {
  public static func == (left: DynamicMessage, right: DynamicMessage) -> Bool {
    guard left.descriptor.schema.descriptor == right.descriptor.schema.descriptor else { return false }
    guard left.handle.pointer != right.handle.pointer else { return true }
    guard let left = left.comparableBytes, let right = right.comparableBytes else { return false }
    return left == right
  }

  private var comparableBytes: ByteBuffer? { try? self.encoded(deterministic: true, isPartial: true) }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(self.descriptor.name)
    hasher.combine(self.comparableBytes)
  }
}
