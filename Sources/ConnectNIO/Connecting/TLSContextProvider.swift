internal import Connect
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import Synchronization

/// Has the TLS context of a configuration: made when it is first needed, and again when the files have changed
/// that the configuration names. All of that happens away from the event loops, since reading trust roots takes
/// milliseconds.
///
/// Connections keep the context that they were opened with.
final class TLSContextProvider: Sendable {
  private typealias Outcome = Result<NIOSSLContext, ConnectError>

  private struct State {
    /// Nil before the first attempt to make a context.
    var outcome: Outcome?
    /// When to look at the files again.
    var nextCheck = NIODeadline.uptimeNanoseconds(0)
    var isWorking = false
    var waiting: [EventLoopPromise<NIOSSLContext>] = []
  }

  private let tls: NIOHTTPClient.Configuration.TLS
  private let applicationProtocols: [String]
  private let logger: Logger
  private let paths: [String]
  private let state = Mutex(State())
  /// The files that the context was last made of, or that it could not be made of. Locked for as long as work
  /// goes on, of which there is one at a time.
  private let files = Mutex<TLSFiles?>(nil)

  /// - Parameter applicationProtocols: What to offer by ALPN, best first.
  init(
    _ tls: NIOHTTPClient.Configuration.TLS,
    applicationProtocols: [String],
    logger: Logger
  ) {
    self.tls = tls
    self.applicationProtocols = applicationProtocols
    self.logger = logger
    self.paths = tls.filePaths
  }

  /// The context for a new connection; fails with ``ConnectError``.
  ///
  /// It waits for a look at the files if that is due.
  func context(on eventLoop: any EventLoop) -> EventLoopFuture<NIOSSLContext> {
    let promise = eventLoop.makePromise(of: NIOSSLContext.self)
    let now = NIODeadline.now()
    let (current, isFirst): (Outcome?, Bool) = self.state.withLock { state in
      if !state.isWorking, let outcome = state.outcome, self.paths.isEmpty || now < state.nextCheck {
        return (outcome, false)
      }
      state.waiting.append(promise)
      defer { state.isWorking = true }
      return (nil, !state.isWorking)
    }
    if let current {
      promise.completeWith(current.mapError { $0 })
    } else if isFirst {
      NIOThreadPool.singleton.submit { _ in self.work() }
    }
    return promise.futureResult
  }

  /// Looks at the files and makes a context if that is needed.
  private func work() {
    let previous = self.state.withLock { $0.outcome }
    let outcome = self.files.withLock { files in self.update(previous, &files) }
    let waiting = self.state.withLock { state in
      state.outcome = outcome
      state.nextCheck = .now() + TimeAmount(max(self.tls.fileCheckInterval.clamped, .zero))
      state.isWorking = false
      defer { state.waiting = [] }
      return state.waiting
    }
    for promise in waiting { promise.completeWith(outcome.mapError { $0 }) }
  }

  private func update(_ previous: Outcome?, _ files: inout TLSFiles?) -> Outcome {
    if let previous, let old = files {
      guard old.mayHaveChanged else { return previous }
      let new = TLSFiles(paths: self.paths)
      files = new
      guard !new.hasSameContents(as: old) else { return previous }
      return self.replace(previous, using: new)
    }
    let new = TLSFiles(paths: self.paths)
    files = new
    return self.make(using: new)
  }

  /// A context made of changed files; the previous one if they cannot be used.
  private func replace(_ previous: Outcome, using files: TLSFiles) -> Outcome {
    let outcome = self.make(using: files)
    switch (outcome, previous) {
    case (.success, _):
      self.logger.debug("the TLS files have changed: new connections use the new ones")
    case (.failure(let error), .success):
      self.logger.warning(
        "the TLS files have changed and cannot be used: the previous ones stay in use",
        metadata: ["error": "\(error)"]
      )
      return previous
    case (.failure, .failure):
      break
    }
    return outcome
  }

  private func make(using files: TLSFiles) -> Outcome {
    do {
      return .success(try NIOSSLContext(configuration: self.makeConfiguration(files)))
    } catch {
      return .failure(
        ConnectError(
          code: .failedPrecondition,
          message: "the client's TLS configuration cannot be used: \(Self.describe(error))",
          exception: error
        )
      )
    }
  }

  private func makeConfiguration(_ files: TLSFiles) throws -> TLSConfiguration {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.applicationProtocols = self.applicationProtocols
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
    case .systemDefault:
      configuration.trustRoots = .default
    case .pemFile(let path):
      configuration.trustRoots = .certificates(
        try Self.certificates(files.bytes(of: path), "the file \(path)")
      )
    case .pemBytes(let bytes):
      configuration.trustRoots = .certificates(try Self.certificates(bytes, "the trust roots"))
    }
    switch self.tls.clientCertificate {
    case nil:
      break
    case .pemFiles(let chain, let key):
      configuration.certificateChain = try Self.certificates(
        files.bytes(of: chain),
        "the file \(chain)"
      ).map { .certificate($0) }
      configuration.privateKey = .privateKey(
        try Self.privateKey(files.bytes(of: key), "the file \(key)")
      )
    case .pemBytes(let chain, let key):
      configuration.certificateChain = try Self.certificates(chain, "the client's certificate chain")
        .map { .certificate($0) }
      configuration.privateKey = .privateKey(try Self.privateKey(key, "the client's private key"))
    }
    return configuration
  }

  private static func certificates(
    _ bytes: [UInt8],
    _ source: String
  ) throws(ConnectError) -> [NIOSSLCertificate] {
    guard let certificates = try? NIOSSLCertificate.fromPEMBytes(bytes), !certificates.isEmpty else {
      throw self.unusable("there is no certificate in PEM in \(source)")
    }
    return certificates
  }

  private static func privateKey(
    _ bytes: [UInt8],
    _ source: String
  ) throws(ConnectError) -> NIOSSLPrivateKey {
    guard let key = try? NIOSSLPrivateKey(bytes: bytes, format: .pem) else {
      throw self.unusable("there is no usable private key in PEM in \(source)")
    }
    return key
  }

  private static func describe(_ error: any Error) -> String {
    if let message = (error as? ConnectError)?.message { return message }
    // The key itself has been read by then. Also found while files are being exchanged one after the other.
    if case NIOSSLError.failedToLoadPrivateKey = error {
      return "the private key is not the one of the client's certificate"
    }
    return String(describing: error)
  }

  private static func unusable(_ message: String) -> ConnectError {
    ConnectError(code: .failedPrecondition, message: message)
  }
}

extension NIOHTTPClient.Configuration.TLS {
  /// The files whose changes are followed.
  fileprivate var filePaths: [String] {
    var paths: [String] = []
    if case .pemFile(let path) = self.trustRoots { paths.append(path) }
    if case .pemFiles(let chain, let privateKey) = self.clientCertificate { paths += [chain, privateKey] }
    return paths
  }
}
