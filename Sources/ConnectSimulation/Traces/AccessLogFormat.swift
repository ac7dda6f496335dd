internal import Connect

/// Access logs: one JSON object a line.
struct AccessLogFormat {
  private var lines = LineSplitter()

  mutating func read(_ bytes: [UInt8], _ builder: inout TraceBuilder) {
    self.lines.read(bytes) { Self.read($0, &builder) }
  }

  mutating func finish(_ builder: inout TraceBuilder) {
    self.lines.finish { Self.read($0, &builder) }
  }

  private static func read(_ line: LineSplitter.Line, _ builder: inout TraceBuilder) {
    switch line {
    case .tooLong(let number):
      builder.mistake("the line is longer than \(LineSplitter.longestLine >> 20) MiB", line: number)
    case .text(let text, let number):
      do throws(JSONParser.Failure) {
        let entry = LogEntry(try JSONParser.parse(text))
        switch entry.call {
        case .success(let call): builder.add(call, line: number, isOrdered: true)
        case .failure(let problem): builder.mistake(problem.text, line: number)
        }
      } catch {
        builder.mistake("no JSON: \(error.problem), column \(error.column)", line: number)
      }
    }
  }
}

/// A line of an access log. Which keys are known is in the guide `WhatIf`.
struct LogEntry {
  struct Problem: Error {
    var text: String
  }

  private static let startKeys = ["start_time", "starttime", "start", "grpc.start_time"]
  private static let timeKeys = [
    "time", "timestamp", "@timestamp", "ts", "msec", "time_iso8601", "datetime", "date", "end_time",
  ]
  private static let methodKeys = [
    "method", "grpc_method", "rpc", "rpc_method", "full_method", "fullmethod", "procedure", "path", ":path",
    "x_envoy_original_path", "uri", "request_uri", "request_path", "url", "request",
  ]
  private static let verbs: Set<String> = [
    "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT",
  ]
  private static let codeKeys = [
    "grpc_code", "grpc.code", "grpc_status", "grpc_status_number", "grpc.status", "rpc_code", "connect_code",
    "code",
    "error_code", "status", "status_code", "response_code", "http_status", "http_code",
  ]
  private static let serverKeys = [
    "server", "upstream_host", "upstream_addr", "upstream", "backend", "server_address", "server.address",
    "server_addr",
    "peer", "peer.address", "instance", "pod", "hostname", "host",
  ]
  private static let durationNames = [
    "duration", "latency", "elapsed", "response_time", "took", "time_taken", "grpc.time", "grpc.duration",
    "rpc_duration",
    "request_duration", "total_time",
  ]
  private static let suffixes: [(text: String, seconds: Double)] = [
    ("_ms", 1e-3), ("_millis", 1e-3), ("_milliseconds", 1e-3), ("_us", 1e-6), ("_micros", 1e-6),
    ("_microseconds", 1e-6), ("_ns", 1e-9), ("_nanos", 1e-9), ("_nanoseconds", 1e-9), ("_s", 1), ("_sec", 1),
    ("_seconds", 1),
  ]
  /// Keys of durations with their unit in seconds. A number without a unit is in milliseconds, as Envoy's; nginx has seconds.
  private static let durationKeys: [(key: String, unit: Double)] =
    durationNames.map { ($0, 1e-3) }
    + durationNames.flatMap { name in suffixes.map { (name + $0.text, $0.seconds) } }
    + [("request_time", 1), ("upstream_response_time", 1), ("durationms", 1e-3), ("latencyms", 1e-3)]
  private static let attemptKeys = ["attempts", "upstream_request_attempt_count", "attempt_count"]

  /// Keys in lower case with `_` for `-`; those of inner objects with a dot.
  private var fields: [String: JSONValue] = [:]

  init(_ value: JSONValue) {
    self.add(value, prefix: "", depth: 0)
  }

  private mutating func add(_ value: JSONValue, prefix: String, depth: Int) {
    guard case .object(let members) = value, depth < 3 else { return }
    for member in members {
      let key = prefix + member.name.lowercased().replacing("-", with: "_")
      if case .object = member.value { self.add(member.value, prefix: key + ".", depth: depth + 1) }
      self.fields[key] = member.value
    }
  }

  private func first(_ keys: [String]) -> JSONValue? {
    for key in keys {
      if let value = self.fields[key], let text = value.text, text != "-" { return value }
    }
    return nil
  }

  var call: Result<TracedCall, Problem> {
    func missing(_ what: String, _ example: String) -> Result<TracedCall, Problem> {
      .failure(Problem(text: "there is no \(what), such as \(example)"))
    }
    guard !self.fields.isEmpty else { return .failure(Problem(text: "the line is no object")) }
    guard let method = self.method else { return missing("method", #""method": "/package.Service/Method""#) }
    guard let duration = self.duration else { return missing("duration", #""duration_ms": 12.5"#) }
    guard let code = self.code else { return missing("code", #""code": "unavailable" or "status": 200"#) }
    var attempts = self.first(Self.attemptKeys)?.double.flatMap { Int(exactly: $0.rounded()) }
    if attempts == nil, let retries = self.first(["retries"])?.double {
      attempts = Int(exactly: retries.rounded() + 1)
    }
    var server = self.first(Self.serverKeys)?.text
    // nginx lists the servers that it has tried, one after the other.
    if let tried = server?.split(whereSeparator: { $0 == "," || $0 == " " }), tried.count > 1 {
      server = tried.last.map(String.init)
      attempts = attempts ?? tried.count
    }
    var call = TracedCall(
      method: method,
      server: server?.isEmpty == true ? nil : server.map { String($0.prefix(256)) },
      duration: duration,
      code: code,
      attempts: attempts.flatMap { (1...1_000).contains($0) ? $0 : nil }
    )
    if let start = self.first(Self.startKeys).flatMap(TraceTime.seconds) {
      call.start = start
    } else if let time = self.first(Self.timeKeys) {
      guard let end = TraceTime.seconds(time) else {
        return .failure(
          Problem(text: "\"\(time.text?.prefix(40) ?? "")\" is no time of RFC 3339 or since 1970")
        )
      }
      // A line is written when its call ends.
      call.start = end - duration.seconds
    } else {
      return missing("time", #""time": "2026-11-27T08:00:00.123Z""#)
    }
    return .success(call)
  }

  private var method: String? {
    if let service = self.first(["grpc.service", "grpc_service", "rpc.service", "service"])?.text,
      let method = self.first(["grpc.method", "grpc_method", "rpc.method", "method"])?.text,
      !method.contains("/"),
      !Self.verbs.contains(method), service.contains(".") || self.fields["grpc.service"] != nil
    {
      return "/\(service)/\(method)"
    }
    for key in Self.methodKeys {
      if let text = self.fields[key]?.text, !Self.verbs.contains(text) { return text }
    }
    return nil
  }

  private var duration: Duration? {
    for (key, unit) in Self.durationKeys {
      guard let value = self.fields[key] else { continue }
      if let duration = TraceTime.duration(value, unit: unit) { return duration }
      // nginx lists the times of the servers that it has tried.
      if let text = value.text, text.contains(",") {
        let parts = text.split(whereSeparator: { $0 == "," || $0 == " " }).compactMap { Double($0) }
        if !parts.isEmpty { return TraceTime.duration(parts.reduce(0, +) * unit) }
      }
    }
    return nil
  }

  private var code: Code? {
    for key in Self.codeKeys {
      if let value = self.fields[key], let code = Code(trace: value) { return code }
    }
    return nil
  }
}
