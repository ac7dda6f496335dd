internal import Connect

/// Cassettes: recorded calls with the times of their parts. When the calls began is not in them.
struct CassetteFormat {
  private var pieces = JSONPieces(elementsOf: ["exchanges"])

  mutating func read(_ bytes: [UInt8], _ builder: inout TraceBuilder) {
    self.pieces.read(bytes) { Self.read($0, &builder) }
  }

  mutating func finish(_ builder: inout TraceBuilder) {
    self.pieces.finish { Self.read($0, &builder) }
  }

  private static func read(_ found: JSONPieces.Found, _ builder: inout TraceBuilder) {
    switch found {
    case .problem(let problem, let line): builder.mistake(problem, line: line)
    case .part(_, let text, let line):
      do throws(JSONParser.Failure) {
        let exchange = try JSONParser.parse(text)
        guard let call = Self.call(exchange) else {
          return builder.mistake("the call has no times: record it with times", line: line)
        }
        builder.add(call, line: line, isOrdered: false)
      } catch {
        builder.mistake("no JSON: \(error.problem)", line: line + error.line - 1)
      }
    }
  }

  private static func call(_ exchange: JSONValue) -> TracedCall? {
    let parts = exchange["parts"]?.elements ?? []
    guard let last = parts.last, let end = last["ms"]?.double else { return nil }
    let sent = parts.last { $0["finish"] != nil }?["ms"]?.double ?? 0
    // A client that sends slowly is no slow server.
    let duration = max(end - min(sent, end), 0) / 1e3
    return TracedCall(
      method: exchange["call"]?.text ?? "",
      duration: TraceTime.duration(duration) ?? .zero,
      code: self.code(parts)
    )
  }

  private static func code(_ parts: [JSONValue]) -> Code {
    if let failure = parts.last?["fail"]?["code"]?.text { return Code(name: failure) ?? .unknown }
    if parts.last?["cancel"] != nil { return .canceled }
    let head = parts.first { $0["head"] != nil }?["head"]
    let end = parts.last?["end"]
    if let status = (end?["grpc-status"] ?? head?["headers"]?["grpc-status"]), let code = Code(trace: status)
    {
      return code
    }
    for part in parts {
      guard let received = part["receive"] else { continue }
      // gRPC-Web ends with trailers in the body, Connect streams with a message of their own.
      if let code = received["fields"]?["grpc-status"].flatMap({ Code(trace: $0) }) { return code }
      if let name = received["json"]?["error"]?["code"]?.text, let code = Code(name: name) { return code }
    }
    guard let status = head?["status"]?.double.flatMap({ Int(exactly: $0) }), status != 200 else {
      return .ok
    }
    let body = parts.first { $0["receive"] != nil }?["receive"]?["json"]
    return body?["code"]?.text.flatMap { Code(name: $0) } ?? Code(httpStatus: status)
  }
}
