internal import Connect
public import ConnectChannels

/// Which services call which, and by which service configs: what a ``StormCheck`` looks at.
///
/// ```json
/// { "load": 10,
///   "services": [
///     { "name": "client", "calls": [{ "service": "orders", "method": "/shop.Orders/Place", "config": { "methodConfig": [] } }] },
///     { "name": "orders", "servers": 2, "latency": "0.005s",
///       "calls": [{ "service": "stock", "method": "/shop.Stock/Take", "times": 2, "config": {} }] },
///     { "name": "stock" }
///   ] }
/// ```
///
/// `load` is how many calls begin in a second at each service that nobody calls, 10 by default. Of a service, `servers` (1), `latency`
/// (`"0.001s"`, for its own work) and `concurrency` (any number) may be left out; of a call, `times` (1) and `config`, a service config.
public struct ServiceMap: Sendable, Hashable {
  /// Calls that a service makes for each call that it gets.
  public struct Call: Sendable, Hashable {
    /// The name of the service that is called.
    public var service: String
    /// `/package.Service/Method`.
    public var method: String
    /// How many calls, one after the other.
    public var times: Int
    /// How the caller calls the service.
    public var config: ServiceConfig

    /// The rules for the method; nil if there are none.
    var rules: MethodConfig? {
      let info = MethodInfo(path: self.method, streamType: .unary)
      return MethodTable(self.config.methods) { $0 }.rules(
        service: String(info.service),
        method: String(info.name)
      )
    }

    /// How many attempts a call makes at most.
    var attempts: Int {
      switch self.rules?.attempts {
      case .retry(let policy): min(policy.maximumAttempts, MethodConfig.maximumAttempts)
      case .hedging(let policy): min(policy.maximumAttempts, MethodConfig.maximumAttempts)
      case nil: 1
      }
    }

    /// The longest waits between attempts, in all.
    var waits: Duration {
      switch self.rules?.attempts {
      case .retry(let policy):
        var (sum, wait) = (Duration.zero, policy.initialBackoff)
        for _ in 1..<max(self.attempts, 1) {
          sum += min(wait, policy.maximumBackoff)
          wait = wait.scaled(by: policy.backoffMultiplier)
        }
        return sum
      case .hedging(let policy): return policy.hedgingDelay * (self.attempts - 1)
      case nil: return .zero
      }
    }
  }

  /// A service, or a program that calls services.
  public struct Service: Sendable, Hashable {
    /// Its name; unique.
    public var name: String
    /// How many processes it has.
    public var servers: Int
    /// How long its own work takes.
    public var latency: Duration
    /// How many requests a process works on at the same time; nil for any number.
    public var concurrency: Int?
    /// The calls that it makes for each call, one after the other.
    public var calls: [Call]
  }

  /// The services, callers before those that they call.
  public let services: [Service]
  /// How many calls begin in a second at each service that nobody calls.
  public let callsPerSecond: Double

  /// Parses a map.
  ///
  /// - Throws: ``WhatIfError`` with the place that is wrong, for services that call each other in a circle, and for more calls than can
  ///   be simulated.
  public init(json: String) throws(WhatIfError) {
    do throws(ServiceConfigError) {
      let root = JSONNode(try Self.parse(json))
      try Self.check(root, ["load", "services"])
      self.callsPerSecond = Double(try root.member("load")?.integer(in: 1...100_000) ?? 10)
      var services: [Service] = []
      for node in try root.required("services").elements() { services.append(try Self.service(node)) }
      self.services = try Self.sorted(services)
      try self.checkSize()
    } catch {
      throw WhatIfError(
        "the map of services is wrong\(error.path.isEmpty ? "" : " at \(error.path)"): \(error.problem)"
      )
    }
  }

  /// What a simulation can do in minutes.
  private func checkSize() throws(ServiceConfigError) {
    let check = StormCheck(self)
    let calls = self.services.reduce(0) { $0 + check.usualCalls(of: $1.name) } * self.callsPerSecond
    guard calls <= 100_000 else {
      throw ServiceConfigError(
        path: "services",
        problem: "they make \(Plot.number(calls)) calls a second, of which 100,000 can be simulated: "
          + "give a smaller load, or fewer times"
      )
    }
  }

  /// The services that nobody calls.
  var roots: [Service] {
    let called = Set(self.services.flatMap { $0.calls.map(\.service) })
    return self.services.filter { !called.contains($0.name) }
  }

  private static func parse(_ json: String) throws(ServiceConfigError) -> JSONValue {
    do throws(JSONParser.Failure) {
      return try JSONParser.parse(json)
    } catch {
      throw ServiceConfigError(
        path: "",
        problem: "no JSON, line \(error.line), column \(error.column): \(error.problem)"
      )
    }
  }

  /// A misspelt key would be a rule that does not hold.
  private static func check(_ node: JSONNode, _ known: [String]) throws(ServiceConfigError) {
    for member in try node.members() where !known.contains(member.name) {
      throw node.error("\"\(member.name)\" is not known: there are \(known.joined(separator: ", "))")
    }
  }

  private static func service(_ node: JSONNode) throws(ServiceConfigError) -> Service {
    try self.check(node, ["name", "servers", "latency", "concurrency", "calls"])
    let name = try node.required("name").string()
    let isName =
      !name.isEmpty && name.utf8.count < 60
      && name.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
          || byte == UInt8(ascii: "-")
      }
    guard isName else { throw node.error("\"\(name.prefix(60))\" is no name of letters, digits and -") }
    var calls: [Call] = []
    for call in try node.member("calls")?.elements() ?? [] { calls.append(try self.call(call)) }
    return Service(
      name: name,
      servers: try node.member("servers")?.integer(in: 1...1_000) ?? 1,
      latency: try node.member("latency")?.duration() ?? .milliseconds(1),
      concurrency: try node.member("concurrency")?.integer(in: 1...1_000_000),
      calls: calls
    )
  }

  private static func call(_ node: JSONNode) throws(ServiceConfigError) -> Call {
    try self.check(node, ["service", "method", "times", "config"])
    let method = try node.required("method").string()
    guard let path = TraceBuilder.path(method), path.dropFirst().contains("/") else {
      throw node.error("\"\(method.prefix(60))\" is no method such as /package.Service/Method")
    }
    var config = ServiceConfig()
    if let value = try node.member("config") {
      do throws(ServiceConfigError) {
        config = try ServiceConfig(json: value.value.description)
      } catch {
        throw ServiceConfigError(path: "\(value.path).\(error.path)", problem: error.problem)
      }
    }
    return Call(
      service: try node.required("service").string(),
      method: path,
      times: try node.member("times")?.integer(in: 1...1_000) ?? 1,
      config: config
    )
  }

  /// Callers first.
  private static func sorted(_ services: [Service]) throws(ServiceConfigError) -> [Service] {
    var left: [String: Service] = [:]
    for service in services {
      guard left.updateValue(service, forKey: service.name) == nil else {
        throw ServiceConfigError(path: "services", problem: "the service \"\(service.name)\" is there twice")
      }
    }
    for service in services {
      for call in service.calls where left[call.service] == nil {
        throw ServiceConfigError(
          path: "services",
          problem: "\(service.name) calls \"\(call.service.prefix(60))\", which is not there"
        )
      }
    }
    guard services.contains(where: { !$0.calls.isEmpty }) else {
      throw ServiceConfigError(path: "services", problem: "no service calls another one")
    }
    var sorted: [Service] = []
    while !left.isEmpty {
      let called = Set(left.values.flatMap { $0.calls.map(\.service) })
      let next = services.filter { left[$0.name] != nil && !called.contains($0.name) }
      guard !next.isEmpty else {
        let names = left.keys.sorted().joined(separator: ", ")
        throw ServiceConfigError(path: "services", problem: "these call each other in a circle: \(names)")
      }
      for service in next { left[service.name] = nil }
      sorted += next
    }
    return sorted
  }
}
