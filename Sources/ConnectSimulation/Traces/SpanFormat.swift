internal import Connect

/// OTLP traces in JSON (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>): documents with `resourceSpans`, as the
/// file exporter writes them. Attributes are those of OpenTelemetry's conventions for RPC, older and newer.
struct SpanFormat {
  private var pieces = JSONPieces(elementsOf: ["spans"], valuesOf: ["resource"])
  /// What the spans that follow are of.
  private var resource = SpanResource()
  private var window = SpanWindow()

  mutating func read(_ bytes: [UInt8], _ builder: inout TraceBuilder) {
    // Taken out, so that the parts may change the rest.
    var pieces = self.pieces
    pieces.read(bytes) { self.read($0, &builder) }
    self.pieces = pieces
  }

  mutating func finish(_ builder: inout TraceBuilder) {
    var pieces = self.pieces
    pieces.finish { self.read($0, &builder) }
    self.window.finish(&builder)
  }

  private mutating func read(_ found: JSONPieces.Found, _ builder: inout TraceBuilder) {
    switch found {
    case .problem(let problem, let line): builder.mistake(problem, line: line)
    case .part(let key, let text, let line):
      let value: JSONValue
      do throws(JSONParser.Failure) {
        value = try JSONParser.parse(text)
      } catch {
        return builder.mistake("no JSON: \(error.problem)", line: line + error.line - 1)
      }
      if key == "resource" {
        return self.resource = SpanResource(SpanAttributes(value))
      }
      switch Span.make(value, of: self.resource, line: line) {
      case .success(let span?): self.window.add(span, &builder)
      case .success(nil): break
      case .failure(let problem): builder.mistake(problem.text, line: line)
      }
    }
  }
}

/// Who makes spans.
struct SpanResource {
  var instance: String?
  var zone: String?

  init() {}

  init(_ attributes: SpanAttributes) {
    self.instance = attributes["service.instance.id", "k8s.pod.name", "host.name"]
    self.zone = attributes["cloud.availability_zone", "zone"]
  }
}

/// A span of an RPC.
struct Span {
  enum Kind {
    case client, server, attempt
  }

  struct Problem: Error {
    var text: String
  }

  var id: String
  var parent: String
  var kind: Kind
  var method: String
  var server: String?
  /// Of a server's span.
  var zone: String?
  /// In seconds since 1970.
  var start: Double
  var duration: Duration
  var code: Code
  var line: Int

  /// - Returns: Nil for spans of other things than RPCs.
  static func make(_ value: JSONValue, of resource: SpanResource, line: Int) -> Result<Span?, Problem> {
    let attributes = SpanAttributes(value)
    let name = value["name"]?.text ?? ""
    guard let (method, isAttempt) = self.method(name, attributes) else { return .success(nil) }
    let kind: Kind
    switch value["kind"]?.text {
    case "2", "SPAN_KIND_SERVER": kind = .server
    case "3", "SPAN_KIND_CLIENT": kind = isAttempt ? .attempt : .client
    case _ where isAttempt: kind = .attempt
    case _ where name.hasPrefix("Sent."): kind = .client
    case _ where name.hasPrefix("Recv."): kind = .server
    default: return .success(nil)
    }
    guard let id = value[first: "spanId", "span_id"]?.text, !id.isEmpty else {
      return .failure(Problem(text: "the span has no spanId"))
    }
    guard let start = value[first: "startTimeUnixNano", "start_time_unix_nano"]?.text.flatMap({ Int64($0) }),
      let end = value[first: "endTimeUnixNano", "end_time_unix_nano"]?.text.flatMap({ Int64($0) }),
      start >= 0, end >= 0
    else {
      return .failure(Problem(text: "the span has no startTimeUnixNano and endTimeUnixNano in nanoseconds"))
    }
    guard end >= start else {
      return .failure(Problem(text: "the clock runs back: the span ends \(start - end) ns before it begins"))
    }
    return .success(
      Span(
        id: id,
        parent: value[first: "parentSpanId", "parent_span_id"]?.text ?? "",
        kind: kind,
        method: method,
        server: kind == .server
          ? resource.instance ?? attributes["server.address"]
          : attributes[
            "network.peer.address",
            "server.address",
            "net.peer.ip",
            "net.sock.peer.addr",
            "net.peer.name"
          ]
          .map { address in
            guard
              let port = attributes["network.peer.port", "server.port", "net.peer.port", "net.sock.peer.port"]
            else {
              return address
            }
            return "\(address):\(port)"
          },
        zone: kind == .server ? resource.zone : nil,
        start: Double(start) / 1e9,
        duration: .nanoseconds(end - start),
        code: self.code(value, attributes),
        line: line
      )
    )
  }

  /// The method, and whether the span's name says that it is an attempt, as gRPC's own spans do.
  private static func method(_ name: String, _ attributes: SpanAttributes) -> (String, Bool)? {
    let isAttempt = name.hasPrefix("Attempt.")
    if let method = attributes["rpc.method"] {
      if method.contains("/") { return (method, isAttempt) }
      guard let service = attributes["rpc.service"] else {
        return (method.isEmpty ? "" : "/\(method)", isAttempt)
      }
      return (method.isEmpty ? "" : "/\(service)/\(method)", isAttempt)
    }
    for prefix in ["Sent.", "Recv.", "Attempt."] where name.hasPrefix(prefix) {
      let rest = name.dropFirst(prefix.count)
      guard !rest.contains("/"), let dot = rest.lastIndex(of: ".") else { return ("/\(rest)", isAttempt) }
      return ("/\(rest[..<dot])/\(rest[rest.index(after: dot)...])", isAttempt)
    }
    guard attributes["rpc.system"] != nil || attributes["rpc.system.name"] != nil else { return nil }
    return (name, isAttempt)
  }

  private static func code(_ value: JSONValue, _ attributes: SpanAttributes) -> Code {
    for key in [
      "rpc.grpc.status_code", "rpc.response.status_code", "rpc.connect_rpc.error_code", "error.type",
    ] {
      if let text = attributes[key], let code = Code(trace: .string(text)) { return code }
    }
    switch value["status"]?["code"]?.text {
    case "2", "STATUS_CODE_ERROR": return .unknown
    default: return .ok
    }
  }
}

/// The attributes of a span or a resource, as texts.
struct SpanAttributes {
  private var values: [String: String] = [:]

  init(_ owner: JSONValue) {
    for attribute in owner["attributes"]?.elements ?? [] {
      guard let key = attribute["key"]?.text, let value = attribute["value"] else { continue }
      let text = value[first: "stringValue", "intValue", "doubleValue", "string_value", "int_value"]?.text
      if let text { self.values[key] = text }
    }
  }

  /// The first of these attributes that is there and not empty.
  subscript(keys: String...) -> String? {
    for key in keys {
      if let value = self.values[key], !value.isEmpty || key == "rpc.method" { return value }
    }
    return nil
  }
}

/// The last spans, so that attempts and servers' spans find their calls: exporters write children before their parents, and seldom long
/// before.
struct SpanWindow {
  /// How many spans wait for their relatives.
  private static let maximumCount = 65_536

  private struct Waiting {
    var span: Span
    var attempts: [Span] = []
    var servers: [Span] = []
  }

  private var waiting: [String: Waiting] = [:]
  /// The calls that spans belong to, by the spans' ids.
  private var owners: [String: String] = [:]
  /// The spans that wait for a parent, by its id.
  private var children: [String: [String]] = [:]
  /// Ids in the order in which they came.
  private var order: [String] = []
  private var orderStart = 0

  mutating func add(_ span: Span, _ builder: inout TraceBuilder) {
    guard self.waiting[span.id] == nil, self.owners[span.id] == nil else {
      return builder.mistake("the span \(span.id.prefix(40)) is there twice", line: span.line)
    }
    let parent = self.owners[span.parent] ?? span.parent
    if !parent.isEmpty, self.waiting[parent]?.span.method == span.method {
      self.adopt(span, parent)
      // What waits for this span belongs to the call as well.
      self.moveChildren(of: span, to: parent)
      return
    }
    self.waiting[span.id] = Waiting(span: span)
    self.order.append(span.id)
    self.moveChildren(of: span, to: span.id)
    if !span.parent.isEmpty { self.children[span.parent, default: []].append(span.id) }
    if self.order.count - self.orderStart > Self.maximumCount { self.release(&builder) }
  }

  private mutating func moveChildren(of span: Span, to id: String) {
    for child in self.children.removeValue(forKey: span.id) ?? [] {
      guard let waiting = self.waiting[child] else { continue }
      guard waiting.span.method == span.method else {
        // A call that the method's server makes.
        continue
      }
      self.waiting[child] = nil
      self.adopt(waiting.span, id)
      for attempt in waiting.attempts { self.adopt(attempt, id) }
      for server in waiting.servers { self.adopt(server, id) }
    }
  }

  private mutating func adopt(_ span: Span, _ id: String) {
    self.owners[span.id] = id
    if span.kind == .server {
      self.waiting[id]?.servers.append(span)
    } else {
      self.waiting[id]?.attempts.append(span)
    }
  }

  /// The oldest one gets no relatives any more.
  private mutating func release(_ builder: inout TraceBuilder) {
    let id = self.order[self.orderStart]
    self.orderStart += 1
    if self.orderStart > Self.maximumCount {
      self.order.removeFirst(self.orderStart)
      self.orderStart = 0
    }
    guard let waiting = self.waiting.removeValue(forKey: id) else { return }
    self.forget(waiting)
    let parent = waiting.span.parent
    if var siblings = self.children[parent] {
      siblings.removeAll { $0 == id }
      self.children[parent] = siblings.isEmpty ? nil : siblings
    }
    builder.add(Self.call(waiting), line: waiting.span.line, isOrdered: false)
  }

  mutating func finish(_ builder: inout TraceBuilder) {
    while self.orderStart < self.order.count {
      let id = self.order[self.orderStart]
      self.orderStart += 1
      guard let waiting = self.waiting.removeValue(forKey: id) else { continue }
      builder.add(Self.call(waiting), line: waiting.span.line, isOrdered: false)
    }
    self = SpanWindow()
  }

  /// Forgets the spans of a call.
  private mutating func forget(_ waiting: Waiting) {
    for span in waiting.attempts + waiting.servers { self.owners[span.id] = nil }
  }

  private static func call(_ waiting: Waiting) -> TracedCall {
    let span = waiting.span
    var call = TracedCall(
      method: span.method,
      server: span.server,
      zone: span.zone,
      start: span.start,
      duration: span.duration,
      code: span.code
    )
    let attempts = waiting.attempts.sorted { $0.start < $1.start }
    if !attempts.isEmpty {
      call.attempts = attempts.count
      call.attemptEnds = attempts.map { .init(duration: $0.duration, code: $0.code) }
      call.server = attempts.last?.server ?? call.server
    } else if !waiting.servers.isEmpty {
      call.attempts = waiting.servers.count
    }
    if span.kind != .server, let server = waiting.servers.max(by: { $0.start < $1.start }) {
      call.server = server.server ?? call.server
      call.zone = server.zone
      let inner = attempts.last?.duration ?? span.duration
      if waiting.servers.count == 1, inner > server.duration { call.network = inner - server.duration }
    }
    return call
  }
}
