/// What responses of gRPC and gRPC-Web have in common.
enum GRPCResponseRules {
  /// The problem with the content-type of a response with status 200, if it has one.
  ///
  /// Another codec of the same protocol means `internal`, anything else `unknown`, as in connect-go. The base
  /// alone means `+proto`.
  static func contentTypeError(of headers: Headers, base: String, expected: String) -> ConnectError? {
    guard let received = headers.first(lowercased: "content-type") else {
      return ResponseRules.contentTypeError(code: .unknown, nil, expected: expected)
    }
    if received == expected || (received == base && expected.dropFirst(base.count) == "+proto") { return nil }
    let essence = MediaType.essence(received)
    if self.full(essence, base: base) == self.full(MediaType.essence(expected), base: base) { return nil }
    return ResponseRules.contentTypeError(
      code: essence == base || essence.hasPrefix("\(base)+") ? .internalError : .unknown,
      received,
      expected: expected
    )
  }

  private static func full(_ essence: String, base: String) -> String {
    essence == base ? "\(base)+proto" : essence
  }

  /// What of `fields` is metadata.
  static func metadata(of fields: Headers) -> Headers {
    guard fields.contains(where: { GRPCStatus.isStatusField($0.name) }) else { return fields }
    return Headers(fields.filter { !GRPCStatus.isStatusField($0.name) })
  }
}
