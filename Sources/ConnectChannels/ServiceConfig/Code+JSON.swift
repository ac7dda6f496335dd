internal import Connect

extension Code {
  private static let byGRPCName = Dictionary(
    uniqueKeysWithValues: Code.allCases.map { ($0.grpcName, $0) }
  )

  /// A code of an error in a service config: a name in any case, or a number (gRFC A6).
  init(_ node: JSONNode) throws(ServiceConfigError) {
    let code: Code?
    switch node.value {
    case .string(let name): code = Self.byGRPCName[name.uppercased()]
    default: code = Code(rawValue: try node.integer(in: 0...Int(UInt32.max)))
    }
    guard let code else {
      throw node.error("is no status code of gRPC; write a name such as \"UNAVAILABLE\"")
    }
    guard code != .ok else { throw node.error("OK is no error") }
    self = code
  }
}
