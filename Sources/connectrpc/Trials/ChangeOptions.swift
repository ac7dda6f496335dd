import ArgumentParser
import ConnectSimulation
import Foundation

/// What is different in the trials of `connectrpc whatif`.
struct ChangeOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A server that takes requests and answers nothing: its number, from 1, or its name in the trace. May be given again, as may all "
        + "that follow.",
      valueName: "server"
    )
  )
  var freeze: [String] = []

  @Option(
    help: ArgumentHelp("A server that takes longer, such as 3=5x for server 3.", valueName: "server=factor")
  )
  var slow: [String] = []

  @Option(help: ArgumentHelp("A server that is gone: connections are refused.", valueName: "server"))
  var gone: [String] = []

  @Option(
    help: ArgumentHelp(
      "Names of zones, such as a,b,c: servers and clients are in them in turn. By default those of the traces.",
      valueName: "zones"
    )
  )
  var zones: String?

  @Option(help: ArgumentHelp("All servers of this zone are gone.", valueName: "zone"))
  var loseZone: [String] = []

  @Option(help: ArgumentHelp("The load by a factor, such as 2x, from the beginning.", valueName: "factor"))
  var load: String?

  @Flag(help: "Servers restart one after the other: each is drained for 1 s, and gone for 2 s.")
  var rollout = false

  @Option(help: "When this begins, such as 20s; 1s by default, when there are connections.")
  var at: TimeSpan?

  var zoneNames: [String] {
    self.zones?.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } ?? []
  }

  /// - Parameter servers: The names of the servers.
  /// - Throws: ``Failure`` for a server that is not there.
  func changes(_ servers: [String]) throws -> [WhatIf.Change] {
    var changes: [WhatIf.Change] = []
    for name in self.freeze { changes.append(.freeze(server: try Self.index(of: name, servers, "--freeze"))) }
    for text in self.slow {
      guard let separator = text.lastIndex(of: "="),
        let factor = Self.factor(text[text.index(after: separator)...])
      else {
        throw Failure.usage("--slow has a server and a factor, such as 3=5x, and not '\(text)'")
      }
      changes.append(
        .slow(server: try Self.index(of: String(text[..<separator]), servers, "--slow"), by: factor)
      )
    }
    for name in self.gone { changes.append(.remove(server: try Self.index(of: name, servers, "--gone"))) }
    changes += self.loseZone.map { .loseZone($0) }
    if let load = self.load {
      guard let factor = Self.factor(load[...]) else {
        throw Failure.usage("--load has a factor, such as 2x, and not '\(load)'")
      }
      changes.append(.load(times: factor))
    }
    if self.rollout { changes.append(.rollout(drain: .seconds(1), downtime: .seconds(2))) }
    return changes
  }

  private static func factor(_ text: Substring) -> Double? {
    guard let factor = Double(text.hasSuffix("x") ? text.dropLast() : text), factor > 0, factor <= 1_000_000
    else {
      return nil
    }
    return factor
  }

  /// A name counts before a number.
  private static func index(of name: String, _ servers: [String], _ option: String) throws -> Int {
    if let index = servers.firstIndex(of: name) { return index }
    if let number = Int(name), servers.indices.contains(number - 1) { return number - 1 }
    let known = servers.prefix(20).enumerated().map { "\($0 + 1) \(Console.line($1))" }.joined(
      separator: ", "
    )
    throw Failure.usage(
      "\(option): there is no server '\(name)'; there are \(known)\(servers.count > 20 ? ", …" : "")"
    )
  }
}
