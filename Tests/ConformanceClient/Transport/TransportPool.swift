internal import ConnectNIO
internal import Synchronization

/// The transports of all cases, one for each ``TransportSettings``. Those that have not been used for the
/// longest time are shut down when there are too many.
final class TransportPool: Sendable {
  private struct Entry {
    var transport: NIOHTTPClient
    var users = 0
    var lastUse = 0
  }

  private struct State {
    var entries: [TransportSettings: Entry] = [:]
    var uses = 0
  }

  /// How many transports without calls are kept. A runner has about four servers at the same time.
  private static let maximumUnused = 8

  private let state = Mutex(State())

  /// A transport, to be given back with ``release(_:)``.
  func acquire(_ settings: TransportSettings) -> NIOHTTPClient {
    self.state.withLock { state in
      var entry =
        state.entries[settings]
        ?? Entry(
          transport: NIOHTTPClient(configuration: settings.configuration())
        )
      entry.users += 1
      state.entries[settings] = entry
      return entry.transport
    }
  }

  func release(_ settings: TransportSettings) {
    let surplus = self.state.withLock { state -> NIOHTTPClient? in
      state.uses += 1
      state.entries[settings]?.users -= 1
      state.entries[settings]?.lastUse = state.uses
      let unused = state.entries.filter { $0.value.users == 0 }
      guard unused.count > Self.maximumUnused,
        let oldest = unused.min(by: { $0.value.lastUse < $1.value.lastUse })
      else { return nil }
      return state.entries.removeValue(forKey: oldest.key)?.transport
    }
    if let surplus { Task { await surplus.shutdown(within: .seconds(1)) } }
  }

  /// Closes all connections.
  func shutdown() async {
    let transports = self.state.withLock { $0.entries.values.map(\.transport) }
    await withTaskGroup(of: Void.self) { group in
      for transport in transports {
        group.addTask { await transport.shutdown(within: .milliseconds(500)) }
      }
    }
  }
}
