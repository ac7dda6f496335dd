internal import Connect

/// What the server of an ``InMemoryStream`` waits for beside request and response: time, and the stream's end.
struct InMemoryWaits {
  /// Why reading and waiting are over.
  private(set) var interruption: ConnectError?
  var deadline: (any CallTimer)?
  private var sleepers: [ObjectIdentifier: (wait: ExecutorWait<Void>, timer: any CallTimer)] = [:]
  private var closeWaits: [ExecutorWait<Void>] = []

  mutating func sleep(_ wait: ExecutorWait<Void>, _ timer: any CallTimer) {
    self.sleepers[ObjectIdentifier(wait)] = (wait, timer)
  }

  mutating func wake(_ wait: ExecutorWait<Void>) {
    self.sleepers.removeValue(forKey: ObjectIdentifier(wait))?.wait.resume(returning: ())
  }

  mutating func waitForClose(_ wait: ExecutorWait<Void>) { self.closeWaits.append(wait) }

  mutating func forget(_ id: ObjectIdentifier) {
    self.sleepers.removeValue(forKey: id)?.timer.cancel()
    self.closeWaits.removeAll { ObjectIdentifier($0) == id }
  }

  mutating func interrupt(_ error: ConnectError) {
    self.interruption = self.interruption ?? error
    let sleepers = self.sleepers
    self.sleepers = [:]
    for sleeper in sleepers.values {
      sleeper.timer.cancel()
      sleeper.wait.resume(throwing: error)
    }
  }

  mutating func close() {
    self.deadline = nil
    let closeWaits = self.closeWaits
    self.closeWaits = []
    for wait in closeWaits { wait.resume(returning: ()) }
  }
}
