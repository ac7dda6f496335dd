internal import Connect
internal import ConnectChannels
internal import NIOCore

/// Reads the text of cassettes. What is missing or wrong in it is an error with the place.
extension RecordedExchange {
  init(_ node: JSONNode, limit: Int) throws(ServiceConfigError) {
    try node.expectMembers(["call", "headers", "http", "over", "parts", "wire"])
    self.path = try node.required("call").string()
    self.isGET = try node.required("http").choice(["GET": true, "POST": false])
    self.wire = try node.required("wire").string()
    let versions: [HTTPConnectionInfo.Version] = [.http1, .http2, .http3]
    self.version = try node.member("over")?.choice(versions.reduce(into: [:]) { $0[$1.rawValue] = $1 })
    self.headers = try node.required("headers").headers()
    self.parts = []
    for part in try node.required("parts").elements() { self.parts.append(try Part(part, limit: limit)) }
  }
}

extension RecordedExchange.Part {
  private static let names = ["cancel", "end", "fail", "finish", "head", "receive", "send"]

  fileprivate init(_ node: JSONNode, limit: Int) throws(ServiceConfigError) {
    try node.expectMembers(Self.names + ["ms"])
    self.time = try node.member("ms")?.integer(in: 0...Int(Int32.max)) ?? 0
    let names = try node.members().map(\.name).filter { $0 != "ms" }
    guard names.count == 1, let name = names.first, let content = try node.member(name) else {
      throw node.error("expected one of \(Self.names.joined(separator: ", "))")
    }
    switch name {
    case "send": self.event = .send(try Payload(content, limit: limit))
    case "finish": self.event = .finish(try content.headers())
    case "head":
      try content.expectMembers(["headers", "status"])
      self.event = .head(
        status: try content.required("status").integer(in: 200...999),
        headers: try content.required("headers").headers()
      )
    case "receive": self.event = .receive(try Payload(content, limit: limit))
    case "end": self.event = .end(try content.headers())
    case "fail": self.event = .fail(try RecordedExchange.Failure(content))
    default:
      try content.expectMembers([])
      self.event = .cancel
    }
  }
}

extension RecordedExchange.Failure {
  fileprivate init(_ node: JSONNode) throws(ServiceConfigError) {
    try node.expectMembers(["code", "isFinal", "isUnprocessed", "message", "subject"])
    let codes = Code.allCases.filter { $0 != .ok }
    self.code = try node.required("code").choice(codes.reduce(into: [:]) { $0[$1.name] = $1 })
    self.message = try node.member("message")?.string()
    self.isUnprocessed = try node.member("isUnprocessed")?.bool() ?? false
    self.isFinal = try node.member("isFinal")?.bool() ?? false
    let subjects: [RecordedExchange.Failure.Subject] = [.connection, .version, .reset]
    self.subject = try node.member("subject")?.choice(subjects.reduce(into: [:]) { $0[$1.rawValue] = $1 })
  }
}

extension Payload {
  private static let names = ["base64", "cut", "fields", "json", "text"]

  fileprivate init(_ node: JSONNode, limit: Int) throws(ServiceConfigError) {
    try node.expectMembers(Self.names + ["flags", "isCompressed"])
    let members = try node.members().filter { Self.names.contains($0.name) }
    guard members.count == 1, let member = members.first else {
      throw node.error("expected one of \(Self.names.joined(separator: ", "))")
    }
    // A message may be null in JSON, so that it counts as present.
    let content = JSONNode(member.value, path: "\(node.path).\(member.name)")
    switch member.name {
    case "json": self.content = .json(member.value.sorted)
    case "text": self.content = .text(try content.string())
    case "base64":
      guard let bytes = Base64.decode(try content.string()) else { throw content.error("is not base64") }
      self.content = .bytes(bytes)
    case "fields": self.content = .fields(try content.headers())
    default:
      try content.expectMembers(["flags", "length", "received"])
      self.content = .cut(
        Cut(
          flags: UInt8(try content.member("flags")?.integer(in: 0...255) ?? 0),
          length: try content.member("length")?.integer(in: 0...Int(UInt32.max)) ?? 0,
          received: try content.required("received").integer(in: 1...max(1, limit))
        )
      )
    }
    self.flags = UInt8(try node.member("flags")?.integer(in: 0...255) ?? 0)
    self.isCompressed = try node.member("isCompressed")?.bool() ?? false
  }
}

extension JSONNode {
  /// Fails for members with other names, which may be typing errors.
  func expectMembers(_ names: [String]) throws(ServiceConfigError) {
    for member in try self.members() where !names.contains(member.name) {
      throw self.error("\"\(member.name)\" is not known here")
    }
  }

  /// The value of one of several known texts.
  fileprivate func choice<Value>(_ values: [String: Value]) throws(ServiceConfigError) -> Value {
    let text = try self.string()
    if let value = values[text] { return value }
    throw self.error(
      "expected one of \(values.keys.sorted().joined(separator: ", ")), found \"\(text.prefix(40))\""
    )
  }

  fileprivate func headers() throws(ServiceConfigError) -> Headers {
    var headers = Headers()
    for member in try self.members() {
      let node = JSONNode(member.value, path: "\(self.path).\(member.name)")
      if case .array = member.value {
        for element in try node.elements() { headers.add(name: member.name, value: try element.string()) }
      } else {
        headers.add(name: member.name, value: try node.string())
      }
    }
    return headers
  }
}
