internal import Synchronization

/// Something that lives as long as an xDS client.
protocol ClientCompanion: AnyObject, Sendable {
  /// Called on the client's executor, once the client is over.
  func shutDown()
}

/// What parts above keep for the life of a client: one object of each type.
final class ClientCompanions: Sendable {
  private let companions = Mutex<[any ClientCompanion]>([])

  /// The object of this type. It is made when it is first asked for.
  ///
  /// - Parameter make: Called under a lock: it must not use the client.
  func companion<Companion: ClientCompanion>(_ make: () -> Companion) -> Companion {
    self.companions.withLock { companions in
      for case let companion as Companion in companions { return companion }
      let companion = make()
      companions.append(companion)
      return companion
    }
  }

  /// In the order in which they were made. To be called on the client's executor.
  func shutDown() {
    for companion in self.companions.withLock({ $0 }) { companion.shutDown() }
  }
}
