public import Connect

extension Code {
  /// The code for an HTTP response without a usable RPC error; as `init(httpStatus:)`.
  public static func fromHTTPStatus(_ status: Int) -> Code { Code(httpStatus: status) }

  /// The code with this name on the wire, `ok` among them; nil for a name that no code has.
  public static func fromName(_ name: String) -> Code? {
    name == Code.ok.name ? .ok : Code(name: name)
  }
}

extension JSONCodec {
  /// A codec with connect-swift's names of the options.
  ///
  /// - Parameters:
  ///   - alwaysEncodeEnumsAsInts: Write enum values as numbers.
  ///   - preserveProtobufFieldNames: Write field names as in the proto file, not in lowerCamelCase.
  public init(alwaysEncodeEnumsAsInts: Bool, preserveProtobufFieldNames: Bool = false) {
    self.init(
      alwaysPrintEnumsAsInts: alwaysEncodeEnumsAsInts,
      preserveProtoFieldNames: preserveProtobufFieldNames
    )
  }

  /// A codec that writes field names as in the proto file, or in lowerCamelCase.
  public init(preserveProtobufFieldNames: Bool) {
    self.init(preserveProtoFieldNames: preserveProtobufFieldNames)
  }
}
