internal import Connect
internal import ConnectChannels
internal import ConnectTesting
internal import XCTest

@testable internal import ConnectXDS

/// Many random histories: in the end, each watch has what the servers say, and nothing is left when nobody watches.
final class RandomDiscoveryTests: XCTestCase {
  private static let names = ["a", "b", "xdstp://x/TYPE/c", "xdstp://x/TYPE/d?k=v", "xdstp://y/TYPE/e"]
  private static let servers = ["one", "two", "three"]

  private static let bootstrap = XDSBootstrap(
    servers: [.init(uri: "one", credentials: .insecure), .init(uri: "two", credentials: .insecure)],
    authorities: [
      "x": .init(servers: [
        .init(uri: "two", credentials: .insecure), .init(uri: "three", credentials: .insecure),
      ]),
      "y": .init(),
    ]
  )

  func testHistories() throws {
    for seed in 0..<150 { try History(seed: UInt64(seed)).run() }
  }

  /// One history.
  private final class History {
    private struct Watch {
      var heard: Heard
      var type: ResourceType
      var name: String
      var last: String?
    }

    private let seed: UInt64
    private var random: SeededRandom
    private let fixture = DiscoveryFixture(RandomDiscoveryTests.bootstrap)
    private var watches: [Watch] = []
    private var version = 0

    init(seed: UInt64) {
      self.seed = seed
      self.random = SeededRandom(seed: seed)
    }

    func run() throws {
      for _ in 0..<60 { try self.step() }
      try self.settle()
      for index in self.watches.indices {
        self.watches[index].last = self.watches[index].heard.take().last ?? self.watches[index].last
        XCTAssertEqual(self.watches[index].last, "+final", "\(self.watches[index]), seed \(self.seed)")
      }
      for watch in self.watches { self.fixture.cancel(watch.heard) }
      XCTAssertEqual(self.open.map(\.server), [], "seed \(self.seed)")
      XCTAssertEqual(self.fixture.executor.scheduled, [], "seed \(self.seed)")
      XCTAssertEqual(self.fixture.snapshot(), [], "seed \(self.seed)")
    }

    /// The streams that neither side has ended.
    private var open: [ScriptedPlanes.Stream] {
      self.fixture.planes.streams.filter { !$0.isCancelled && !$0.hasEnded }
    }

    private func chance(_ percentage: Int) -> Bool { self.random.index(below: 100) < percentage }

    private func element<Element>(_ list: [Element]) -> Element { list[self.random.index(below: list.count)] }

    private func step() throws {
      let planes = self.fixture.planes
      switch self.random.index(below: 8) {
      case 0, 1:
        let type = self.element(ResourceType.allCases)
        let name = self.element(RandomDiscoveryTests.names)
          .replacing("TYPE", with: type.messageName)
        self.watches.append(Watch(heard: self.fixture.watch(name, type), type: type, name: name))
      case 2:
        guard !self.watches.isEmpty else { return }
        let watch = self.watches.remove(at: self.random.index(below: self.watches.count))
        self.fixture.cancel(watch.heard)
        _ = watch.heard.take()
        self.fixture.executor.advance(by: .milliseconds(self.random.index(below: 20_000)))
        XCTAssertEqual(watch.heard.take(), [], "a cancelled watch hears nothing, seed \(self.seed)")
      case 3:
        let server = self.element(RandomDiscoveryTests.servers)
        if planes.unreachable.remove(server) == nil { planes.unreachable.insert(server) }
      case 4:
        guard !self.open.isEmpty else { return }
        let stream = self.element(self.open)
        self.fixture.on { stream.end(ConnectError(code: .unavailable, message: "random")) }
      case 5:
        self.fixture.executor.advance(by: .milliseconds(self.random.index(below: 20_000)))
        planes.connects = self.chance(80)
      default:
        guard !self.open.isEmpty else { return }
        try self.answer(self.element(self.open), isFinal: false)
      }
      // At most one stream to each server.
      XCTAssertEqual(Set(self.open.map(\.server)).count, self.open.count, "seed \(self.seed)")
    }

    /// Answers the last request of a type: at random, or as all servers do in the end.
    private func answer(_ stream: ScriptedPlanes.Stream, isFinal: Bool) throws {
      for type in ResourceType.allCases where isFinal || self.chance(50) {
        guard let request = stream.requests.last(where: { $0.typeURL == type.url }) else { continue }
        self.version += 1
        var resources = request.resourceNames.map { "\($0)=final" }
        if !isFinal {
          resources = request.resourceNames.filter { _ in self.chance(70) }
            .map { self.chance(20) ? "\($0)!bad" : "\($0)=\(self.version)" }
          if self.chance(10) { resources.append("!nameless") }
          if self.chance(10) { resources.append("other=1") }
          if self.chance(10), let first = resources.first { resources.append(first) }
        }
        self.fixture.respond(resources, type, version: "\(self.version)", on: stream)
        guard self.fixture.planes.streams.last(where: { $0 === stream })?.isCancelled == false else { return }
      }
    }

    /// All servers are back, and answer.
    private func settle() throws {
      self.fixture.planes.unreachable = []
      self.fixture.planes.connects = true
      for stream in self.open { self.fixture.on { stream.onEvent(.started) } }
      // Longer than any backoff.
      self.fixture.executor.advance(by: .seconds(150))
      for _ in 0..<3 {
        for stream in self.open where !stream.isCancelled { try self.answer(stream, isFinal: true) }
      }
    }
  }
}
