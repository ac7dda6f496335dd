import Connect
import ConnectNIO
import ConnectXDS

extension NIOHTTPClient.Configuration {
  /// Has the control planes of the environment's bootstrap say where calls go.
  ///
  /// - Throws: ``Failure`` of usage if there is no bootstrap, or if it does not know the target.
  mutating func resolve(xdsTarget target: String) throws {
    do {
      let client = XDSClient(bootstrap: try XDSBootstrap.ofEnvironment())
      try self.resolve(through: client, target: target)
    } catch let error as XDSBootstrapError {
      throw Failure.usage("--xds \(target): \(error)")
    } catch let error as ConnectError {
      throw Failure.usage("--xds \(target): \(error.message ?? "\(error)")")
    }
  }
}
