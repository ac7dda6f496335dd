internal import Connect
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import Synchronization

/// Makes the one TLS context of a client, when it is first needed, away from the event loops: reading trust
/// roots takes milliseconds.
final class TLSContextProvider: Sendable {
  private enum State {
    case unused
    case making([EventLoopPromise<NIOSSLContext>])
    case made(Result<NIOSSLContext, ConnectError>)
  }

  private let tls: NIOHTTPClient.Configuration.TLS
  private let protocols: [String]
  private let state = Mutex(State.unused)

  init(_ configuration: NIOHTTPClient.Configuration) {
    self.tls = configuration.tls
    self.protocols = configuration.version.applicationProtocols
  }

  /// The context; fails with ``ConnectError``.
  func context(on eventLoop: any EventLoop) -> EventLoopFuture<NIOSSLContext> {
    let promise = eventLoop.makePromise(of: NIOSSLContext.self)
    let (isFirst, made): (Bool, Result<NIOSSLContext, ConnectError>?) = self.state.withLock { state in
      switch state {
      case .unused:
        state = .making([promise])
        return (true, nil)
      case .making(let promises):
        state = .making(promises + [promise])
        return (false, nil)
      case .made(let result):
        return (false, result)
      }
    }
    if isFirst {
      NIOThreadPool.singleton.submit { _ in self.make() }
    } else if let made {
      promise.completeWith(made.mapError { $0 })
    }
    return promise.futureResult
  }

  private func make() {
    let result: Result<NIOSSLContext, ConnectError>
    do {
      result = .success(try NIOSSLContext(configuration: self.makeConfiguration()))
    } catch {
      result = .failure(
        ConnectError(
          code: .failedPrecondition,
          message: "the client's TLS configuration cannot be used: \(error)",
          exception: error
        )
      )
    }
    let promises = self.state.withLock { state in
      guard case .making(let promises) = state else { return [] as [EventLoopPromise<NIOSSLContext>] }
      state = .made(result)
      return promises
    }
    for promise in promises { promise.completeWith(result.mapError { $0 }) }
  }

  private func makeConfiguration() throws -> TLSConfiguration {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.applicationProtocols = self.protocols
    configuration.shutdownTimeout = .seconds(1)
    switch self.tls.minimumVersion {
    case .tls12: configuration.minimumTLSVersion = .tlsv12
    case .tls13: configuration.minimumTLSVersion = .tlsv13
    }
    switch self.tls.certificateVerification {
    case .full: configuration.certificateVerification = .fullVerification
    case .none: configuration.certificateVerification = .none
    }
    switch self.tls.trustRoots {
    case .systemDefault: configuration.trustRoots = .default
    case .pemFile(let path): configuration.trustRoots = .file(path)
    case .pemBytes(let bytes):
      configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(bytes))
    }
    switch self.tls.clientCertificate {
    case nil:
      break
    case .pemFiles(let chain, let key):
      configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(chain).map { .certificate($0) }
      configuration.privateKey = .privateKey(try NIOSSLPrivateKey(file: key, format: .pem))
    case .pemBytes(let chain, let key):
      configuration.certificateChain = try NIOSSLCertificate.fromPEMBytes(chain).map { .certificate($0) }
      configuration.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: key, format: .pem))
    }
    return configuration
  }
}

extension NIOHTTPClient.Configuration.HTTPVersion {
  /// What is offered in the TLS handshake, best first.
  var applicationProtocols: [String] {
    switch self {
    case .automatic: ["h2", "http/1.1"]
    case .http1Only: ["http/1.1"]
    case .http2Only: ["h2"]
    }
  }

  /// The version that connections will have, where that does not depend on the server.
  func known(for scheme: Origin.Scheme) -> HTTPConnectionInfo.Version? {
    switch (self, scheme) {
    case (.http1Only, _): .http1
    case (.http2Only, _): .http2
    case (.automatic, .https): nil
    case (.automatic, .http), (.automatic, .unix): .http1
    }
  }
}
