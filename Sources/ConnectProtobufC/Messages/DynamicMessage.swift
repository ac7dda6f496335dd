internal import Connect
public import NIOCore

/// A message whose type is known at run time only, or a protoc-c struct whose fields are to be found by name.
///
/// A value: a copy shares the memory until one of the two is changed. Memory of values that were replaced is given back
/// with the message.
public struct DynamicMessage: Sendable {
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
  /// - Throws: A ``ConnectError`` with `internal`, or with `resource_exhausted` past a limit.
  public init(
    _ descriptor: MessageDescriptor,
    serializedBytes bytes: ByteBuffer,
    limits: DecodingLimits = .defaults
  ) throws {
    self.descriptor = descriptor
    self.handle = try bytes.withUnsafeReadableBytes {
      try BinaryCoding.decode($0, descriptor.schema.table, graph: descriptor.graph, limits: limits)
    }
  }

  /// Protobuf's binary encoding.
  ///
  /// - Parameter deterministic: Whether equal messages give equal bytes: sorts the entries of maps.
  /// - Throws: A ``ConnectError`` with `internal` that names a required field that is not set.
  public func serializedBytes(deterministic: Bool = false) throws -> ByteBuffer {
    try self.encoded(deterministic: deterministic, isPartial: false)
  }

  private func encoded(deterministic: Bool, isPartial: Bool) throws -> ByteBuffer {
    let schema = self.descriptor.schema
    guard deterministic, schema.containsMaps else {
      return try BinaryCoding.encode(self.handle, schema.table, isPartial: isPartial)
    }
    try StructCheck.check(self.handle)
    var sorted = self.handle
    sorted.makeUnique()
    MapOrder.sort(sorted.pointer, schema)
    return try BinaryCoding.encode(sorted, schema.table, isPartial: isPartial)
  }

  // MARK: Fields

  /// Whether the field is there: set, if it has presence; else, not zero and not empty.
  public func has(_ key: some FieldKey) throws -> Bool {
    try self.field(key).isPresent(in: self.handle.pointer)
  }

  /// The field's value; its default if it is not there.
  ///
  /// - Throws: A ``ConnectError`` with `invalid_argument` if there is no such field.
  public func value(of key: some FieldKey) throws -> FieldValue {
    self.value(try self.field(key))
  }

  /// Of a string or of bytes.
  func withUnsafeBytes<Result>(
    of key: some FieldKey,
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    let field = try self.field(key)
    guard field.cardinality != .repeated, field.kind == .string || field.kind == .bytes else {
      throw ConnectError.misuse("\(self.descriptor.name).\(field.name) is no string and no bytes")
    }
    return try withExtendedLifetime(self.handle.storage) {
      let message = UnsafeRawPointer(self.handle.pointer)
      let isThere = !field.isOneofMember || field.isSelected(in: message)
      let place = message + field.offset
      return try body(isThere ? field.bytes(at: place) : UnsafeRawBufferPointer(start: nil, count: 0))
    }
  }

  /// The name of an enum field's value; nil if the number has none.
  ///
  /// - Throws: A ``ConnectError`` with `invalid_argument` if there is no such field, or if it is no single enum.
  public func enumName(of key: some FieldKey) throws -> String? {
    let field = try self.field(key)
    guard case .enumeration(let number) = self.value(field), let type = field.enumeration else {
      throw ConnectError.misuse("\(self.descriptor.name).\(field.name) is no enum")
    }
    return type.names[number]
  }

  /// The name of the field that is set of a oneof; nil if none is.
  ///
  /// - Throws: A ``ConnectError`` with `invalid_argument` if there is no such oneof.
  public func member(ofOneof name: String) throws -> String? {
    guard let oneof = self.descriptor.schema.oneofs.first(where: { $0.name == name }) else {
      throw ConnectError.misuse("\(self.descriptor.name) has no oneof \(name)")
    }
    return oneof.members.first { $0.isPresent(in: self.handle.pointer) }?.name
  }

  /// Sets the field to `value`. An enum takes a number or a name; a `float` takes the nearest number that it has.
  ///
  /// - Throws: A ``ConnectError`` with `invalid_argument` if there is no such field, or if the value is not of its type
  ///   or range; the message is then as it was.
  public mutating func set(_ key: some FieldKey, to value: FieldValue) throws {
    let field = try self.field(key)
    // Before anything is copied or changed.
    try FieldWriter.check(value, field, in: self.descriptor)
    self.handle.makeUnique()
    FieldWriter.write(value, field, to: self.handle)
  }

  /// Changes the message in the field; an empty one if there is none yet.
  ///
  /// - Throws: What `body` throws, and a ``ConnectError`` with `invalid_argument` if the field has no message.
  public mutating func update(_ key: some FieldKey, _ body: (inout DynamicMessage) throws -> Void) throws {
    let field = try self.field(key)
    guard case .message(var inner) = self.value(field) else {
      throw ConnectError.misuse("\(self.descriptor.name).\(field.name) is no message")
    }
    try body(&inner)
    try FieldWriter.check(.message(inner), field, in: self.descriptor)
    self.handle.makeUnique()
    FieldWriter.write(.message(inner), field, to: self.handle)
  }

  /// Removes the field's value.
  public mutating func clear(_ key: some FieldKey) throws {
    let field = try self.field(key)
    self.handle.makeUnique()
    field.clear(in: self.handle.pointer)
  }

  private func field(_ key: some FieldKey) throws -> FieldSchema {
    guard let field = key.find(in: self.descriptor) else {
      throw ConnectError.misuse("\(self.descriptor.name) has no field \(key)")
    }
    return field.schema
  }
}

// MARK: Reading

extension DynamicMessage {
  func value(_ field: FieldSchema) -> FieldValue {
    let message = UnsafeRawPointer(self.handle.pointer)
    if field.cardinality == .repeated {
      let places = (0..<field.count(in: message)).lazy.compactMap { field.element($0, in: message) }
      guard field.isMap, let entry = field.message else {
        return .list(places.map { self.value(field, at: $0) })
      }
      let pairs = places.compactMap { place -> (FieldValue, FieldValue)? in
        guard let pointer = field.checkedMessage(at: place) else { return nil }
        let message = self.inner(entry, self.handle.child(pointer))
        guard let key = entry.field(number: 1), let value = entry.field(number: 2) else { return nil }
        return (message.value(key), message.value(value))
      }
      return .map(Dictionary(pairs) { _, last in last })
    }
    if field.isOneofMember, !field.isSelected(in: message) { return self.zero(field) }
    return self.value(field, at: message + field.offset)
  }

  private func value(_ field: FieldSchema, at place: UnsafeRawPointer) -> FieldValue {
    switch field.kind {
    case .bool: return .bool(place.load(as: Int32.self) != 0)
    case .int32, .sint32, .sfixed32: return .int(Int64(place.load(as: Int32.self)))
    case .int64, .sint64, .sfixed64: return .int(place.load(as: Int64.self))
    case .uint32, .fixed32: return .uint(UInt64(place.load(as: UInt32.self)))
    case .uint64, .fixed64: return .uint(place.load(as: UInt64.self))
    case .float: return .double(Double(place.load(as: Float.self)))
    case .double: return .double(place.load(as: Double.self))
    case .enumeration: return .enumeration(place.load(as: Int32.self))
    case .string: return .string(field.string(at: place))
    case .bytes: return .bytes(ByteBuffer(bytes: field.bytes(at: place)))
    case .message:
      guard let pointer = field.checkedMessage(at: place), let schema = field.message else {
        return self.zero(field)
      }
      return .message(self.inner(schema, self.handle.child(pointer)))
    }
  }

  /// The value of a field that is not there.
  private func zero(_ field: FieldSchema) -> FieldValue {
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

  private func inner(_ schema: MessageSchema, _ handle: MessageHandle) -> DynamicMessage {
    DynamicMessage(
      descriptor: MessageDescriptor(graph: self.descriptor.graph, schema: schema),
      handle: handle
    )
  }
}

/// Two messages are equal if they are of one type and have equal bytes, maps in any order. In the bytes of required fields
/// that are not set stand zeros. A message that cannot be encoded is equal to copies that share its memory only.
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
