/// Opens the connections of a channel: what a transport brings.
package protocol ConnectionOpener {
  /// Begins to connect to ``PooledConnection/address``. To be called on the channel's executor.
  ///
  /// Reports the outcome to `connection`: ``PooledConnection/established(_:version:)`` and what follows, or
  /// ``PooledConnection/closed(_:reason:)``. Never reports before this function has returned.
  func open(_ connection: PooledConnection)
}
