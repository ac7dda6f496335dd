/// Keeps calls away while it is not known whether the server is still there.
extension Subchannel {
  /// Whether calls should go to other endpoints. Where there is only one endpoint at a time, they wait for this one.
  var isSuspect: Bool { self.pool.limits.keepsLast && self.pool.isSuspect }

  /// Whether calls may start here, or wait for a connection with room.
  var takesCalls: Bool { self.isReady && !self.isSuspect }

  func connectionIsSuspect(_ connection: PooledConnection) {
    guard case .member(let id) = connection.role else { return }
    self.run(self.pool.suspend(id))
    self.suspicionMayHaveChanged()
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
    if self.isSuspect { self.giveBackWaiting() }
  }
}
