internal import Connect

/// A line of an access log. Which keys are known is in the guide `WhatIf`.
struct LogEntry {
  struct Problem: Error {
    var text: String
    /// Whether the line is about something else than the end of a call.
    var isOther = false
  }

  /// Where the code comes from.
  enum Status {
    case rpc, http
    /// The status of HTTP; nginx has found no status of gRPC.
    case empty
  }

  private static let startKeys = ["start_time", "starttime", "start", "grpc.start_time"]
  private static let timeKeys = [
    "time", "timestamp", "@timestamp", "ts", "msec", "time_iso8601", "datetime", "date", "end_time",
    "time_local",
  ]
  private static let methodKeys = [
    "method", "grpc_method", "rpc", "rpc_method", "full_method", "fullmethod", "procedure", "path", ":path",
    "x_envoy_original_path", "uri", "request_uri", "request_path", "url", "request",
  ]
  private static let verbs: Set<String> = [
    "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT",
  ]
  /// With nginx, the status is in the trailers, or in the headers of a response without a message.
  private static let statusKeys = [
    "grpc_code", "grpc.code", "grpc_status", "grpc_status_number", "grpc.status", "rpc_code", "connect_code",
    "sent_trailer_grpc_status", "upstream_trailer_grpc_status", "sent_http_grpc_status",
    "upstream_http_grpc_status",
  ]
  /// A code of RPC, or a status of HTTP.
  private static let codeKeys = ["code", "error_code", "status", "status_code"]
  private static let httpKeys = ["response_code", "http_status", "http_code"]
  private static let proxyServerKeys = ["upstream_host", "upstream_addr", "upstream", "backend"]
  private static let serverKeys = ["server", "server_address", "server.address", "server_addr"]
  private static let peerKeys = ["peer", "peer.address"]
  private static let hostKeys = ["instance", "pod", "hostname", "host"]
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
  /// Keys of durations with their unit in seconds; nil for what has none. Envoy has milliseconds, nginx seconds.
  private static let durationKeys: [(key: String, unit: Double?)] = {
    var keys: [(key: String, unit: Double?)] = durationNames.map { (key: $0, unit: nil) }
    for name in durationNames {
      for suffix in suffixes { keys.append((key: name + suffix.text, unit: suffix.seconds)) }
    }
    for (key, unit) in [
      ("request_time", 1), ("upstream_response_time", 1), ("durationms", 1e-3), ("latencyms", 1e-3),
    ] {
      keys.append((key: key, unit: unit))
    }
    return keys
  }()
  private static let attemptKeys = ["attempts", "upstream_request_attempt_count", "attempt_count"]

  /// Keys in lower case with `_` for `-`; those of inner objects with a dot.
  private var fields: [String: JSONValue] = [:]
  private let unit: Double

  /// - Parameter unit: The unit of durations that have none, in seconds.
  init(_ value: JSONValue, unit: Double = 1e-3) {
    self.unit = unit
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
      if let value = self.fields[key], let text = value.text, !text.isEmpty, text != "-" { return value }
    }
    return nil
  }

  var call: Result<TracedCall, Problem> {
    guard !self.fields.isEmpty else { return .failure(Problem(text: "the line is no object")) }
    let found = (method: self.method, duration: self.duration, code: self.code)
    guard let method = found.method, let duration = found.duration, let code = found.code else {
      let missing = [
        found.method == nil ? #"method, such as "method": "/package.Service/Method""# : nil,
        found.duration == nil ? #"duration, such as "duration_ms": 12.5"# : nil,
        found.code == nil ? #"code, such as "code": "unavailable" or "status": 200"# : nil,
      ].compactMap { $0 }
      let isStart = self.fields["msg"]?.text?.hasPrefix("started ") == true
      return .failure(Problem(text: "there is no \(missing[0])", isOther: missing.count > 1 || isStart))
    }
    var attempts = self.first(Self.attemptKeys)?.double.flatMap { Int(exactly: $0.rounded()) }
    if attempts == nil, let retries = self.first(["retries"])?.double {
      attempts = Int(exactly: retries.rounded() + 1)
    }
    let (server, tried) = self.server
    var call = TracedCall(
      method: method,
      server: server.map { String($0.prefix(256)) },
      duration: duration.time,
      code: code,
      attempts: (attempts ?? tried).flatMap { (1...1_000).contains($0) ? $0 : nil }
    )
    if duration.isUnitless { call.doubts.insert(.unitless) }
    let (start, time) = (self.first(Self.startKeys), self.first(Self.timeKeys))
    // The interceptors of Go write their beginnings in whole seconds.
    if let start, time == nil || start.text?.contains(".") == true, let seconds = TraceTime.seconds(start) {
      call.start = seconds
    } else if let time = time ?? start {
      guard let end = TraceTime.seconds(time) else {
        return .failure(
          Problem(text: "\"\(time.text?.prefix(40) ?? "")\" is no time of RFC 3339 or since 1970")
        )
      }
      // A line is written when its call ends.
      call.start = end - call.duration.seconds
    } else {
      return .failure(Problem(text: #"there is no time, such as "time": "2026-11-27T08:00:00.123Z""#))
    }
    return .success(call)
  }

  /// The server, and how many servers nginx has tried; it lists them one after the other.
  private var server: (name: String?, tried: Int?) {
    if let address = self.fields["upstream_addr"]?.text {
      // The name of the group, without a port, says that no server could be tried.
      let tried = address.split { $0 == "," || $0 == " " }.filter { $0.contains(":") && $0 != ":" }
      return (tried.last.map(String.init), tried.count > 1 ? tried.count : nil)
    }
    // The name of a proxy that has found no server is not the server's.
    if Self.proxyServerKeys.contains(where: { self.fields[$0] != nil }) {
      return (self.first(Self.proxyServerKeys)?.text, nil)
    }
    // For a server, the peer is the client.
    let isOfServer =
      self.fields["grpc.component"]?.text == "server" || self.fields["span.kind"]?.text == "server"
    let keys = Self.serverKeys + (isOfServer ? [] : Self.peerKeys) + Self.hostKeys
    return (self.first(keys)?.text, nil)
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

  private var duration: (time: Duration, isUnitless: Bool)? {
    for (key, unit) in Self.durationKeys {
      guard let value = self.fields[key], let text = value.text else { continue }
      // Of Envoy it is known.
      let isUnitless = unit == nil && Double(text) != nil && self.fields["response_flags"] == nil
      let scale = unit ?? (isUnitless ? self.unit : 1e-3)
      if let duration = TraceTime.duration(value, unit: scale) { return (duration, isUnitless) }
      // nginx lists the times of the servers that it has tried.
      let parts = text.split { $0 == "," || $0 == " " || $0 == ":" }.compactMap { Double($0) }
      if key == "upstream_response_time", !parts.isEmpty,
        let sum = TraceTime.duration(parts.reduce(0, +) * scale)
      {
        return (sum, false)
      }
    }
    return nil
  }

  private var code: Code? {
    for key in Self.statusKeys + Self.codeKeys {
      if let value = self.fields[key], let code = Code(trace: value) { return code }
    }
    for key in Self.httpKeys {
      if let value = self.fields[key], let code = Code(trace: value, isHTTP: true) { return code }
    }
    return nil
  }

  /// Where ``call``'s code comes from.
  var status: Status {
    for key in Self.statusKeys + Self.codeKeys {
      guard let value = self.fields[key], Code(trace: value) != nil else { continue }
      if let number = value.double, number >= 100 { break }
      return .rpc
    }
    let isNginx = self.fields["upstream_addr"] != nil || self.fields["request_time"] != nil
    return isNginx && Self.statusKeys.contains { self.fields[$0] != nil } ? .empty : .http
  }
}
