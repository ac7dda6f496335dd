internal import Connect

/// Keys of access logs that mean something, in lower case with `_` for `-`; those of inner objects with a dot. Each has a number, so that
/// a line needs one look-up for each of its keys, however many keys there are for a meaning.
enum LogKeys {
  /// Keys with the same meaning.
  struct Group: Sendable {
    /// The most important one first.
    let keys: [String]
    /// By a key's number, how important it is: 0 is most. Keys of other groups have ``none``.
    private let ranks: [UInt8]

    static let none = UInt8.max

    init(_ keys: [String]) {
      self.keys = keys
      var ranks = Array(repeating: Self.none, count: LogKeys.numbers.count)
      for (rank, key) in keys.enumerated() {
        if let number = LogKeys.numbers[key] { ranks[number] = UInt8(clamping: rank) }
      }
      self.ranks = ranks
    }

    func rank(of number: Int) -> UInt8 { self.ranks[number] }
  }

  static let start = Group(startKeys)
  static let time = Group(timeKeys)
  static let service = Group(serviceKeys)
  static let serviceMethod = Group(serviceMethodKeys)
  static let method = Group(methodKeys)
  static let status = Group(statusKeys)
  /// A code of RPC, or a status of HTTP.
  static let anyStatus = Group(statusKeys + codeKeys)
  static let http = Group(httpKeys)
  static let proxyServer = Group(proxyServerKeys)
  static let server = Group(serverKeys + hostKeys)
  static let serverOrPeer = Group(serverKeys + peerKeys + hostKeys)
  static let zone = Group(zoneKeys)
  static let duration = Group(durations.map(\.key))
  static let attempts = Group(attemptKeys)

  static let retries = number(of: "retries")
  static let message = number(of: "msg")
  static let component = number(of: "grpc.component")
  static let spanKind = number(of: "span.kind")
  static let grpcService = number(of: "grpc.service")
  static let responseFlags = number(of: "response_flags")
  static let upstreamAddress = number(of: "upstream_addr")
  static let requestTime = number(of: "request_time")

  /// The unit of the duration with a rank, in seconds; nil for a key that has none.
  static func unit(ofRank rank: UInt8) -> Double? { self.durations[Int(rank)].unit }

  /// The number of a key as a log has it; nil if it means nothing.
  static func number(of key: String) -> Int? {
    if let number = self.numbers[key] { return number }
    let isPlain = key.utf8.allSatisfy { $0 < 0x80 && !(0x41...0x5a).contains($0) && $0 != UInt8(ascii: "-") }
    return isPlain ? nil : self.numbers[self.plain(key)]
  }

  static func plain(_ key: String) -> String { key.lowercased().replacing("-", with: "_") }

  private static let startKeys = ["start_time", "starttime", "start", "grpc.start_time"]
  private static let timeKeys = [
    "time", "timestamp", "@timestamp", "ts", "msec", "time_iso8601", "datetime", "date", "end_time",
    "time_local",
  ]
  private static let serviceKeys = ["grpc.service", "grpc_service", "rpc.service", "service"]
  private static let serviceMethodKeys = ["grpc.method", "grpc_method", "rpc.method", "method"]
  private static let methodKeys = [
    "method", "grpc_method", "rpc", "rpc_method", "full_method", "fullmethod", "procedure", "path", ":path",
    "x_envoy_original_path", "uri", "request_uri", "request_path", "url", "request",
  ]
  /// With nginx, the status is in the trailers, or in the headers of a response without a message.
  private static let statusKeys = [
    "grpc_code", "grpc.code", "grpc_status", "grpc_status_number", "grpc.status", "rpc_code", "connect_code",
    "sent_trailer_grpc_status", "upstream_trailer_grpc_status", "sent_http_grpc_status",
    "upstream_http_grpc_status",
  ]
  private static let codeKeys = ["code", "error_code", "status", "status_code"]
  private static let httpKeys = ["response_code", "http_status", "http_code"]
  private static let proxyServerKeys = ["upstream_host", "upstream_addr", "upstream", "backend"]
  private static let serverKeys = ["server", "server_address", "server.address", "server_addr"]
  private static let peerKeys = ["peer", "peer.address"]
  private static let hostKeys = ["instance", "pod", "hostname", "host"]
  private static let zoneKeys = [
    "server_zone", "upstream_zone", "zone", "availability_zone", "cloud.availability_zone",
  ]
  private static let attemptKeys = ["attempts", "upstream_request_attempt_count", "attempt_count"]
  private static let otherKeys = ["retries", "msg", "grpc.component", "span.kind", "response_flags"]

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
  private static let durations: [(key: String, unit: Double?)] = {
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

  private static let numbers: [String: Int] = {
    let all =
      startKeys + timeKeys + serviceKeys + serviceMethodKeys + methodKeys + statusKeys + codeKeys + httpKeys
      + proxyServerKeys + serverKeys + peerKeys + hostKeys + zoneKeys + attemptKeys + otherKeys
      + durations.map(\.key)
    var numbers: [String: Int] = [:]
    for key in all where numbers[key] == nil { numbers[key] = numbers.count }
    return numbers
  }()
}

/// The values of a line that mean something, by their keys.
struct LogFields {
  /// Whether the line is an object that has members.
  private(set) var isObject = false
  private var numbers: [Int] = []
  private var values: [JSONValue] = []

  init(_ value: JSONValue) {
    self.add(value, prefix: "", depth: 0)
  }

  private mutating func add(_ value: JSONValue, prefix: String, depth: Int) {
    guard case .object(let members) = value, depth < 3 else { return }
    for member in members {
      self.isObject = true
      if case .object = member.value {
        self.add(member.value, prefix: prefix + LogKeys.plain(member.name) + ".", depth: depth + 1)
      }
      let key = prefix.isEmpty ? member.name : prefix + member.name
      guard let number = LogKeys.number(of: key) else { continue }
      if let index = self.numbers.firstIndex(of: number) {
        self.values[index] = member.value
      } else {
        self.numbers.append(number)
        self.values.append(member.value)
      }
    }
  }

  /// - Parameter number: Of ``LogKeys``.
  subscript(number: Int?) -> JSONValue? {
    guard let number, let index = self.numbers.firstIndex(of: number) else { return nil }
    return self.values[index]
  }

  /// The values of a group's keys, the most important one first.
  func all(_ group: LogKeys.Group) -> Found { Found(fields: self, group: group) }

  /// The first text or number that says something.
  func first(_ group: LogKeys.Group) -> JSONValue? {
    for (_, value) in self.all(group) {
      if let text = value.text, !text.isEmpty, text != "-" { return value }
    }
    return nil
  }

  func has(_ group: LogKeys.Group) -> Bool {
    self.numbers.contains { group.rank(of: $0) != LogKeys.Group.none }
  }

  struct Found: Sequence, IteratorProtocol {
    let fields: LogFields
    let group: LogKeys.Group
    private var last = -1

    init(fields: LogFields, group: LogKeys.Group) {
      self.fields = fields
      self.group = group
    }

    mutating func next() -> (rank: UInt8, value: JSONValue)? {
      var best: (rank: UInt8, index: Int) = (LogKeys.Group.none, 0)
      for (index, number) in self.fields.numbers.enumerated() {
        let rank = self.group.rank(of: number)
        if Int(rank) > self.last, rank < best.rank { best = (rank, index) }
      }
      guard best.rank != LogKeys.Group.none else { return nil }
      self.last = Int(best.rank)
      return (best.rank, self.fields.values[best.index])
    }
  }
}
