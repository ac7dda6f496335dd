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

  private static let verbs: Set<String> = [
    "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT",
  ]
  private let fields: LogFields
  private let unit: Double

  /// - Parameter unit: The unit of durations that have none, in seconds.
  init(_ value: JSONValue, unit: Double = 1e-3) {
    self.unit = unit
    self.fields = LogFields(value)
  }

  var call: Result<TracedCall, Problem> {
    guard self.fields.isObject else { return .failure(Problem(text: "the line is no object")) }
    let found = (method: self.method, duration: self.duration, code: self.code)
    guard let method = found.method, let duration = found.duration, let code = found.code else {
      let missing = [
        found.method == nil ? #"method, such as "method": "/package.Service/Method""# : nil,
        found.duration == nil ? #"duration, such as "duration_ms": 12.5"# : nil,
        found.code == nil ? #"code, such as "code": "unavailable" or "status": 200"# : nil,
      ].compactMap { $0 }
      let isStart = self.fields[LogKeys.message]?.text?.hasPrefix("started ") == true
      return .failure(Problem(text: "there is no \(missing[0])", isOther: missing.count > 1 || isStart))
    }
    var attempts = self.fields.first(LogKeys.attempts)?.double.flatMap { Int(exactly: $0.rounded()) }
    if attempts == nil, let retries = self.fields[LogKeys.retries]?.double {
      attempts = Int(exactly: retries.rounded() + 1)
    }
    let (server, tried) = self.server
    var call = TracedCall(
      method: method,
      server: server.map(Self.limited),
      duration: duration.time,
      code: code,
      attempts: (attempts ?? tried).flatMap { (1...1_000).contains($0) ? $0 : nil }
    )
    if duration.isUnitless { call.doubts.insert(.unitless) }
    let (start, time) = (self.fields.first(LogKeys.start), self.fields.first(LogKeys.time))
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
    call.zone = self.fields.first(LogKeys.zone)?.text.map(Self.limited)
    return .success(call)
  }

  /// The server, and how many servers nginx has tried; it lists them one after the other.
  private var server: (name: String?, tried: Int?) {
    if let address = self.fields[LogKeys.upstreamAddress]?.text {
      // The name of the group, without a port, says that no server could be tried.
      let tried = address.utf8.split { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: " ") }.filter {
        $0.count > 1 && $0.contains(UInt8(ascii: ":"))
      }
      return (tried.last.map { String(decoding: $0, as: UTF8.self) }, tried.count > 1 ? tried.count : nil)
    }
    // The name of a proxy that has found no server is not the server's.
    if self.fields.has(LogKeys.proxyServer) { return (self.fields.first(LogKeys.proxyServer)?.text, nil) }
    // For a server, the peer is the client.
    let isOfServer =
      self.fields[LogKeys.component]?.text == "server" || self.fields[LogKeys.spanKind]?.text == "server"
    return (self.fields.first(isOfServer ? LogKeys.server : LogKeys.serverOrPeer)?.text, nil)
  }

  private static func limited(_ name: String) -> String {
    name.utf8.count <= 256 ? name : String(name.prefix(256))
  }

  private var method: String? {
    if let service = self.fields.first(LogKeys.service)?.text,
      let method = self.fields.first(LogKeys.serviceMethod)?.text,
      !method.contains("/"),
      !Self.verbs.contains(method), service.contains(".") || self.fields[LogKeys.grpcService] != nil
    {
      return "/\(service)/\(method)"
    }
    for (_, value) in self.fields.all(LogKeys.method) {
      if let text = value.text, !Self.verbs.contains(text) { return text }
    }
    return nil
  }

  private var duration: (time: Duration, isUnitless: Bool)? {
    for (rank, value) in self.fields.all(LogKeys.duration) {
      guard let text = value.text else { continue }
      let unit = LogKeys.unit(ofRank: rank)
      // Of Envoy it is known.
      let isUnitless = unit == nil && Double(text) != nil && self.fields[LogKeys.responseFlags] == nil
      let scale = unit ?? (isUnitless ? self.unit : 1e-3)
      if let duration = TraceTime.duration(value, unit: scale) { return (duration, isUnitless) }
      // nginx lists the times of the servers that it has tried.
      let parts = text.split { $0 == "," || $0 == " " || $0 == ":" }.compactMap { Double($0) }
      if LogKeys.duration.keys[Int(rank)] == "upstream_response_time", !parts.isEmpty,
        let sum = TraceTime.duration(parts.reduce(0, +) * scale)
      {
        return (sum, false)
      }
    }
    return nil
  }

  private var code: Code? {
    for (_, value) in self.fields.all(LogKeys.anyStatus) {
      if let code = Code(trace: value) { return code }
    }
    for (_, value) in self.fields.all(LogKeys.http) {
      if let code = Code(trace: value, isHTTP: true) { return code }
    }
    return nil
  }

  /// Where ``call``'s code comes from.
  var status: Status {
    for (_, value) in self.fields.all(LogKeys.anyStatus) {
      guard Code(trace: value) != nil else { continue }
      if let number = value.double, number >= 100 { break }
      return .rpc
    }
    let isNginx = self.fields[LogKeys.upstreamAddress] != nil || self.fields[LogKeys.requestTime] != nil
    return isNginx && self.fields.has(LogKeys.status) ? .empty : .http
  }
}
