import Connect
import ConnectInterceptors
import ConnectNIO
import Foundation
import LoopbackServer

/// Makes real calls over real sockets to a server in this process, and shows what passes each stage. Exits with 0 if
/// all calls behave as expected.
@main
struct Demo {
  private enum Version: String, CaseIterable {
    case http1 = "HTTP/1.1"
    case http2 = "HTTP/2"
  }

  private enum Wire: String, CaseIterable {
    case connect = "Connect"
    case grpc = "gRPC"
    case grpcWeb = "gRPC-Web"

    var networkProtocol: NetworkProtocol {
      switch self {
      case .connect: .connect
      case .grpc: .grpc
      case .grpcWeb: .grpcWeb
      }
    }

    /// gRPC needs HTTP/2.
    var versions: [Version] { self == .grpc ? [.http2] : Version.allCases }
  }

  private enum Coding: String, CaseIterable {
    case proto
    case json

    var codec: any Codec {
      switch self {
      case .proto: ProtoCodec()
      case .json: JSONCodec()
      }
    }
  }

  private let server: LoopbackServer
  private let httpClients: [Version: NIOHTTPClient]
  private var failures = 0

  static func main() async throws {
    let server = try await LoopbackServer.start()
    var demo = Demo(
      server: server,
      httpClients: [
        .http1: NIOHTTPClient(configuration: NIOHTTPClient.Configuration(version: .http1Only)),
        .http2: NIOHTTPClient(configuration: NIOHTTPClient.Configuration(version: .http2Only)),
      ]
    )
    await demo.run()
    for client in demo.httpClients.values { await client.shutdown(within: .seconds(5)) }
    await server.stop()
    exit(demo.failures == 0 ? 0 : 1)
  }

  private mutating func run() async {
    print(Style.bold("Connect for Swift on Linux"))
    print("Real calls to \(self.server.url), a server in this process, through three interceptors:")
    print("messages (sees types) → token (asynchronous) → wire (sees bytes); ▼ goes out, ▲ comes back.")

    await self.show("Unary", .connect, .http2, .proto) { try await $0.unary() }
    await self.show("Server stream", .grpcWeb, .http1, .json) { try await $0.serverStream() }
    await self.show("Client stream", .connect, .http2, .json) { try await $0.clientStream() }
    await self.show("Bidirectional stream", .grpc, .http2, .proto) {
      try await $0.bidirectional(isFullDuplex: true)
    }
    await self.show("A call that fails, with a typed detail", .connect, .http1, .proto) {
      try await $0.failure()
    }
    let server = self.server
    await self.show("A call that is cancelled", .connect, .http2, .proto) {
      try await $0.cancellation(server: server)
    }
    await self.showProduction()
    await self.showOperation()
    await self.showFleet()
    await self.showFamilies()
    await self.showMatrix()

    let connections = self.server.journal.snapshot.acceptedConnections
    print("\n\(self.server.requests.count) calls over \(connections) connections.")
    if self.failures == 0 {
      print(Style.good("All calls went as they should."))
    } else {
      print(Style.bad("\(self.failures) of the calls went wrong."))
    }
  }

  private func client(_ wire: Wire, _ version: Version, _ coding: Coding) -> ProtocolClient? {
    guard let httpClient = self.httpClients[version] else { return nil }
    return ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: self.server.url,
        networkProtocol: wire.networkProtocol,
        codec: coding.codec,
        interceptors: [
          { MessageLogger(config: $0) },
          { TokenInterceptor(config: $0) },
          { WireLogger(config: $0) },
        ]
      )
    )
  }

  /// Makes a call with a new client.
  private mutating func show(
    _ title: String,
    _ wire: Wire,
    _ version: Version,
    _ coding: Coding,
    _ call: (Scenarios) async throws -> Void
  ) async {
    let how = [wire.rawValue, coding.rawValue, version.rawValue].map { " · \($0)" }.joined()
    print("\n\(Style.bold(title))\(Style.dim(how))\(Style.build)")
    guard let client = self.client(wire, version, coding) else { return }
    await self.show { try await call(Scenarios(client: client, timeline: $0)) }
  }

  /// Makes a call and prints its timeline.
  private mutating func show(_ call: (Timeline) async throws -> Void) async {
    let timeline = Timeline()
    do {
      try await call(timeline)
      timeline.print()
      print("  \(Style.good("✓"))")
    } catch {
      self.failures += 1
      timeline.print()
      print("  \(Style.bad("✗ \(error)"))")
    }
  }

  /// Makes calls with the recommended interceptors, and explains where the time of one call went.
  private mutating func showProduction() async {
    let how = Style.dim(" · Connect · proto · HTTP/2") + Style.build
    print("\n\(Style.bold("The recommended interceptors, on a bad day"))\(how)")
    guard let httpClient = self.httpClients[.http2] else { return }
    let server = self.server
    var production: Production?
    await self.show { timeline in
      let client = Production(server: server, httpClient: httpClient, timeline: timeline)
      try await client.run()
      production = client
    }
    print("\n\(Style.bold("Where the time of one more such call went"))\(Style.build)")
    do {
      guard let lines = try await production?.explain().description.split(separator: "\n") else { return }
      for line in lines { print("  \(line)") }
    } catch {
      self.failures += 1
      print("  \(Style.bad("✗ \(error)"))")
    }
  }

  /// Makes a call of an operation with a codec, a parser and bytes of its own.
  private mutating func showOperation() async {
    let how = Style.dim(" · Connect · JSON and CSV · HTTP/2") + Style.build
    print("\n\(Style.bold("An operation that is not like the others"))\(how)")
    guard let httpClient = self.httpClients[.http2] else { return }
    let server = self.server
    await self.show { timeline in
      try await Operation(server: server, httpClient: httpClient, timeline: timeline).run()
    }
  }

  /// Makes calls to several servers behind one name, while servers come and go.
  private mutating func showFleet() async {
    let days: [(name: String, policy: String, run: () async throws -> Void)] = [
      ("A fleet behind one name, on a day of changes", "round robin", Fleet.runChanges),
      ("A fleet in two zones, and a client in zone a", "zone aware", Fleet.runZones),
      ("A control plane that moves calls to other servers", "xDS", Mesh.run),
    ]
    for (name, policy, run) in days {
      let how = Style.dim(" · gRPC · proto · HTTP/2 · \(policy)") + Style.build
      print("\n\(Style.bold(name))\(how)")
      do {
        try await run()
        print("  \(Style.good("✓"))")
      } catch {
        self.failures += 1
        print("  \(Style.bad("✗ \(error)"))")
      }
    }
  }

  /// Calls one method through one client with each family of messages.
  private mutating func showFamilies() async {
    let how = Style.dim(" · Connect · json · HTTP/2") + Style.build
    print("\n\(Style.bold("One client, four families of messages"))\(how)")
    guard let client = self.client(.connect, .http2, .json) else { return }
    let families: [(String, (Families) async throws -> Void)] = [
      ("SwiftProtobuf", { try await $0.swiftProtobuf() }),
      ("A struct of protoc-c", { try await $0.structOfC() }),
      ("Known at run time", { try await $0.dynamic() }),
      ("Codable", { try await $0.codable() }),
    ]
    for (name, call) in families {
      print("  \(name)")
      await self.show { try await call(Families(client: client, timeline: $0)) }
    }
  }

  /// Makes each kind of call in each protocol and encoding over each version of HTTP.
  private mutating func showMatrix() async {
    print("\n\(Style.bold("Three protocols side by side"))\(Style.build)")
    print("  \("".padded(to: 26))unary       server stream  client stream  bidirectional  error with detail")
    for wire in Wire.allCases {
      for (version, coding) in wire.versions.flatMap({ version in Coding.allCases.map { (version, $0) } }) {
        guard let client = self.client(wire, version, coding) else { continue }
        let calls = Scenarios(client: client, timeline: nil)
        let name = wire.rawValue.padded(to: 10) + version.rawValue.padded(to: 10) + coding.rawValue
        var row = "  " + name.padded(to: 26)
        row += await self.cell(12) { try await calls.unary() }
        row += await self.cell(15) { try await calls.serverStream() }
        row += await self.cell(15) { try await calls.clientStream() }
        row += await self.cell(15) { try await calls.bidirectional(isFullDuplex: version == .http2) }
        row += await self.cell(10) { try await calls.failure() }
        print(row)
      }
    }
  }

  private mutating func cell(_ width: Int, _ call: () async throws -> Void) async -> String {
    let timeline = Timeline()
    do {
      try await call()
      return Style.good("✓ ") + timeline.elapsed.milliseconds.padded(to: width - 2)
    } catch {
      self.failures += 1
      print("  \(Style.bad("✗ \(error)"))")
      return Style.bad("✗".padded(to: width))
    }
  }
}
