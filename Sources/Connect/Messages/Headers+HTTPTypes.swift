public import HTTPTypes

extension Headers {
  /// The fields of `httpFields`, in order.
  public init(_ httpFields: HTTPFields) {
    self.init(httpFields.map { Field(name: $0.name.canonicalName, value: $0.value) })
  }
}

extension HTTPFields {
  /// `HTTPFields` cannot hold more.
  private static let maximumCount = 65_534

  /// The same fields as `HTTPFields`.
  ///
  /// - Throws: ``ConnectError`` with `invalid_argument` for an invalid field name, for a value with bytes that HTTP
  ///   forbids, or for too many fields for `HTTPFields`.
  public init(_ headers: Headers) throws(ConnectError) {
    guard headers.count <= Self.maximumCount else {
      throw ConnectError(
        code: .invalidArgument,
        message: "\(headers.count) header fields are more than the \(Self.maximumCount) that HTTPFields holds"
      )
    }
    self.init()
    self.reserveCapacity(headers.count)
    for field in headers {
      guard let name = HTTPField.Name(field.name), HTTPField.isValidValue(field.value) else {
        throw ConnectError(code: .invalidArgument, message: "invalid header field '\(field.name)'")
      }
      self.append(HTTPField(name: name, value: field.value))
    }
  }
}
