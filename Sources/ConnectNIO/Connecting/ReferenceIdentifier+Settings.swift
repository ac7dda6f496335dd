package import Connect
package import ConnectChannels

extension NIOHTTPClient.Configuration.TLS {
  /// What the certificates of an origin's servers have to name; nil for an origin without TLS.
  ///
  /// - Throws: ``ConnectError`` with `failed_precondition` if ``serverName`` cannot be used, and with `invalid_argument` if
  ///   the origin's host is no name.
  func identity(of origin: Origin) throws(ConnectError) -> ReferenceIdentifier? {
    origin.scheme == .https ? try self.identity(ofServersOf: origin) : nil
  }

  /// What the certificates of an origin's servers have to name, where these have TLS.
  ///
  /// - Throws: As ``identity(of:)`` does.
  func identity(ofServersOf origin: Origin) throws(ConnectError) -> ReferenceIdentifier {
    if let name = self.serverName {
      do throws(HostProblem) {
        return try ReferenceIdentifier(name)
      } catch {
        throw .unusableTLSConfiguration("the server name \(error.of(name)) (serverName)")
      }
    }
    do throws(HostProblem) {
      return try ReferenceIdentifier(origin.host)
    } catch {
      let message =
        "the host of \(CertificateName.readable(origin.description)) cannot be used: \(error.text)"
      throw ConnectError(code: .invalidArgument, message: message).asFinal
    }
  }
}

extension ReferenceIdentifier {
  /// What the certificate of a connection's server has to name.
  ///
  /// - Parameters:
  ///   - name: The endpoint's own name, which counts before the origin's.
  ///   - identity: That of the origin.
  /// - Throws: ``ConnectError`` with `failed_precondition` if the endpoint's name cannot be used.
  package static func ofEndpoint(
    _ name: String?,
    orOrigin identity: ReferenceIdentifier
  ) throws(ConnectError) -> ReferenceIdentifier {
    guard let name else { return identity }
    do throws(HostProblem) {
      return try ReferenceIdentifier(name)
    } catch {
      let message = "the endpoint's server name \(error.of(name))"
      throw ConnectError(code: .failedPrecondition, message: message).asFinal
    }
  }
}

extension HostProblem {
  /// The text that has the problem, and the problem.
  fileprivate func of(_ name: String) -> String {
    "'\(CertificateName.readable(name))' cannot be used: \(self.text)"
  }
}
