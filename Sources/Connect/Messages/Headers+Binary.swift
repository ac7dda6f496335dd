public import NIOCore

/// Binary metadata: headers whose name ends with `-bin` carry bytes as base64, in all three protocols.
///
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests>
extension Headers {
  /// Adds `value` as base64 without padding, behind the values that `name` already has.
  ///
  /// - Parameters:
  ///   - name: Should end with `-bin`, which tells the peer that the value is binary.
  ///   - value: The bytes before they are encoded.
  public mutating func addBinary(name: String, value: ByteBuffer) {
    self.add(name: name, value: String(buffer: Base64.encode(value, alphabet: .standard, isPadded: false)))
  }

  /// The values of `name`, decoded. Values that an intermediary has joined with commas are split again, whatever white
  /// space is around the commas. Padding is optional.
  ///
  /// - Throws: ``ConnectError`` with `internal` if a value is not base64.
  public func binaryValues(_ name: String) throws(ConnectError) -> [ByteBuffer] {
    var values: [ByteBuffer] = []
    for text in self[name] {
      for part in text.split(separator: ",", omittingEmptySubsequences: false) {
        guard let value = Base64.decode(FieldSpace.trim(part)) else {
          throw ConnectError(code: .internalError, message: "the value of '\(name)' is no valid base64")
        }
        values.append(value)
      }
    }
    return values
  }
}
