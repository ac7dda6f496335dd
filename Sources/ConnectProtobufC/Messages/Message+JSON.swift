public import Connect
public import NIOCore

extension DynamicMessage {
  /// proto3's JSON. As in SwiftProtobuf, required fields may be missing in JSON.
  ///
  /// - Parameters:
  ///   - options: How the text is written, such as the form of enum values and field names.
  ///   - limits: Limits on depth, and on the memory for decoding the content of a `google.protobuf.Any`.
  /// - Throws: A `ConnectError`. `internal`: a value has no JSON form, such as a time out of range or a
  ///   `google.protobuf.Any` of an unknown type. `invalid_argument`: the type's descriptor set is not known.
  ///   `resource_exhausted`: a `google.protobuf.Any` exceeds a limit.
  public func jsonBytes(
    options: JSONCodingOptions = JSONCodingOptions(),
    limits: DecodingLimits = .defaults
  ) throws -> ByteBuffer {
    try self.json(options, limits).text
  }

  /// proto3's JSON, in which a `google.protobuf.Any` that does not decode is `{"@type":"…","value":"…"}`, with its bytes in
  /// base64.
  ///
  /// - Parameter emitsDefaults: Whether fields without presence are written if they are zero or empty, too: in proto3, all but
  ///   messages, `optional` fields and members of oneofs.
  /// - Returns: The text, and the URLs of the types that are not known.
  /// - Throws: As ``jsonBytes(options:limits:)``, but not because of a `google.protobuf.Any` that does not decode.
  package func jsonWithUndecodedAny(
    options: JSONCodingOptions = JSONCodingOptions(),
    emitsDefaults: Bool = false
  ) throws -> (text: ByteBuffer, unknownTypeURLs: Set<String>) {
    try self.json(options, .defaults) { encoding in
      encoding.keepsUndecodedAny = true
      encoding.emitsDefaults = emitsDefaults
    }
  }

  private func json(
    _ options: JSONCodingOptions,
    _ limits: DecodingLimits,
    configure: (inout JSONEncoding) -> Void = { _ in }
  ) throws -> (text: ByteBuffer, unknownTypeURLs: Set<String>) {
    try self.descriptor.checkJSON()
    try StructCheck.check(self.handle, of: self.descriptor.schema.table)
    var encoding = JSONEncoding(options: options, limits: limits, graph: self.descriptor.graph)
    configure(&encoding)
    try withExtendedLifetime(self.handle.storage) {
      try encoding.write(self.handle.message, of: self.descriptor.schema)
    }
    return (encoding.out.bytes, encoding.unknownTypeURLs)
  }

  /// A message from proto3's JSON. `JSONCodingOptions.ignoreUnknownFields` is the only option that has an effect.
  ///
  /// - Throws: A `ConnectError`: `internal` with the position in the text, or `resource_exhausted` past a limit.
  public init(
    _ descriptor: MessageDescriptor,
    jsonBytes bytes: ByteBuffer,
    options: JSONCodingOptions = JSONCodingOptions(),
    limits: DecodingLimits = .defaults
  ) throws {
    try descriptor.checkJSON()
    let handle = try bytes.withUnsafeReadableBytes {
      try JSONDecoding.decode(
        $0,
        of: descriptor.schema,
        graph: descriptor.graph,
        ignoresUnknownFields: options.ignoreUnknownFields,
        limits: limits
      )
    }
    self.init(descriptor: descriptor, handle: handle)
  }
}

extension CMessage {
  /// proto3's JSON; see ``DynamicMessage/jsonBytes(options:limits:)``.
  public func jsonBytes(
    options: JSONCodingOptions = JSONCodingOptions(),
    limits: DecodingLimits = .defaults
  ) throws -> ByteBuffer {
    try self.dynamic().jsonBytes(options: options, limits: limits)
  }

  /// A message from proto3's JSON; see ``DynamicMessage/init(_:jsonBytes:options:limits:)``.
  public init(
    jsonBytes bytes: ByteBuffer,
    options: JSONCodingOptions = JSONCodingOptions(),
    limits: DecodingLimits = .defaults
  ) throws {
    let descriptor = try Struct.messageType.messageDescriptor()
    try self.init(DynamicMessage(descriptor, jsonBytes: bytes, options: options, limits: limits))
  }
}

extension MessageDescriptor {
  fileprivate func checkJSON() throws(ConnectError) {
    guard let name = self.graph.messageWithoutMetadata else { return }
    throw .misuse("JSON needs the descriptor set of \(name)")
  }
}
