/// Keeps calls away while it is not known whether the server is still there. Calls go to other endpoints, or wait for
/// another connection to this one.
extension Subchannel {
  /// Whether there are connections, but none that is known to work.
  var isSuspect: Bool { self.pool.isSuspect }

  /// Whether calls may start here, or wait for a connection with room.
  var takesCalls: Bool { self.isReady && !self.isSuspect }

  func connectionIsSuspect(_ connection: PooledConnection) {
    guard case .member(let id) = connection.role else { return }
    self.pool.suspend(id)
    self.suspicionMayHaveChanged()
    guard !self.pool.waiting.isEmpty else { return }
    // Most servers will have answered by then.
    _ = self.schedule(after: AddressRace.Configuration.defaults.attemptDelay) {
      $0.run($0.pool.openForWaiting())
    }
  }

  func connectionIsAlive(_ connection: PooledConnection) {
    guard case .member(let id) = connection.role else { return }
    self.run(self.pool.resume(id, now: self.now))
    self.suspicionMayHaveChanged()
  }

  /// To be called after each change of the pool's connections.
  func suspicionMayHaveChanged() {
    guard self.isSuspect != self.wasSuspect else { return }
    self.wasSuspect = self.isSuspect
    self.channel?.needsUpdate()
    if self.isSuspect {
      self.run(self.race.connectionIsSuspect())
      self.giveBackWaiting()
    } else {
      self.run(self.race.connectionIsAlive())
    }
  }
}
