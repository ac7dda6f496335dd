internal import Connect
internal import ConnectChannels
internal import Logging
package import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import Synchronization

/// Provides the TLS context of a configuration. It is made when it is first needed, and again when the
/// configuration's files have changed. That happens away from the event loops, since reading trust roots takes
/// milliseconds.
///
/// Connections keep the context that they were opened with.
package final class TLSContextProvider: Sendable {
  private typealias Outcome = Result<TLSContext, ConnectError>

  private struct State {
    /// Nil before the first attempt to make a context.
    var outcome: Outcome?
    /// When to look at the files again.
    var nextCheck = NIODeadline.uptimeNanoseconds(0)
    var isWorking = false
    var waiting: [EventLoopPromise<TLSContext>] = []
  }

  private let tls: NIOHTTPClient.Configuration.TLS
  private let applicationProtocols: [String]
  private let systemTrustRoots: SystemTrustRoots
  private let logger: Logger
  private let paths: [String]
  private let state = Mutex(State())
  /// The files of the last attempt to make a context. Locked while work goes on, so that one thread works at a time.
  private let files = Mutex<TLSFiles?>(nil)

  /// - Parameter applicationProtocols: What to offer by ALPN, best first.
  init(
    _ tls: NIOHTTPClient.Configuration.TLS,
    applicationProtocols: [String],
    systemTrustRoots: SystemTrustRoots = SystemTrustRoots(),
    logger: Logger
  ) {
    self.tls = tls
    self.systemTrustRoots = systemTrustRoots
    self.applicationProtocols = applicationProtocols
    self.logger = logger
    self.paths = tls.filePaths
  }

  /// The context for a new connection; fails with ``ConnectError``.
  ///
  /// It waits for a look at the files if that is due.
  package func context(on eventLoop: any EventLoop) -> EventLoopFuture<TLSContext> {
    let promise = eventLoop.makePromise(of: TLSContext.self)
    let now = NIODeadline.now()
    let (current, isFirst): (Outcome?, Bool) = self.state.withLock { state in
      if !state.isWorking, let outcome = state.outcome, now < state.nextCheck || self.isFinal(outcome) {
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

  /// Whether nothing can change it: the context was made without files. A failure may become a success later.
  private func isFinal(_ outcome: Outcome) -> Bool {
    if case .success = outcome { self.paths.isEmpty } else { false }
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
    guard let previous, case .success = previous, let old = files else {
      // Retries after any failure, even if the files did not cause it: there may have been too many open files.
      let new = TLSFiles(paths: self.paths)
      files = new
      return self.make(using: new)
    }
    guard old.mayHaveChanged else { return previous }
    let new = TLSFiles(paths: self.paths)
    files = new
    guard !new.hasSameContents(as: old) else { return previous }
    return self.replace(previous, using: new)
  }

  /// A context made of the changed files; the previous context, which works, if they cannot be used.
  private func replace(_ previous: Outcome, using files: TLSFiles) -> Outcome {
    let outcome = self.make(using: files)
    switch outcome {
    case .success:
      self.logger.debug("the TLS files have changed: new connections use the new ones")
    case .failure(let error):
      self.logger.warning(
        "the TLS files have changed and cannot be used: the previous ones stay in use",
        metadata: ["error": "\(error)"]
      )
      return previous
    }
    return outcome
  }

  private func make(using files: TLSFiles) -> Outcome {
    do {
      let material = TLSMaterial(
        trust: try self.trust(files),
        clientCertificate: try self.clientCertificate(files),
        keyLog: try self.tls.keyLogFile.map { path in try KeyLogFile(path: path) }
      )
      let context = try NIOSSLContext(configuration: self.makeConfiguration(material))
      return .success(TLSContext(context, material: material))
    } catch {
      // The message of our own errors says everything.
      let cause = error is ConnectError ? nil : error
      return .failure(.unusableTLSConfiguration(Self.describe(error), cause: cause))
    }
  }

  private func clientCertificate(_ files: TLSFiles) throws -> (chain: [UInt8], privateKey: [UInt8])? {
    switch self.tls.clientCertificate {
    case nil: nil
    case .pemFiles(let chain, let key): (try files.bytes(of: chain), try files.bytes(of: key))
    case .pemBytes(let chain, let key):
      (ByteOrderMark.removed(from: chain), ByteOrderMark.removed(from: key))
    }
  }

  private func makeConfiguration(_ material: TLSMaterial) throws -> TLSConfiguration {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.applicationProtocols = self.applicationProtocols
    configuration.shutdownTimeout = .seconds(1)
    switch self.tls.minimumVersion {
    case .tls12: configuration.minimumTLSVersion = .tlsv12
    case .tls13: configuration.minimumTLSVersion = .tlsv13
    }
    // No certificate is trusted here: see ServerVerification.
    configuration.trustRoots = .certificates([])
    configuration.certificateVerification = .noHostnameVerification
    if let keyLog = material.keyLog { configuration.keyLogCallback = { keyLog.append($0) } }
    if let client = material.clientCertificate {
      let (chain, key) = self.clientCertificateSources
      configuration.certificateChain = try Self.certificates(client.chain, chain).map { .certificate($0) }
      configuration.privateKey = .privateKey(try Self.privateKey(client.privateKey, key))
    }
    return configuration
  }

  /// What errors call the client's certificate and key.
  private var clientCertificateSources: (String, String) {
    switch self.tls.clientCertificate {
    case .pemFiles(let chain, let key): ("the file \(chain)", "the file \(key)")
    case .pemBytes, nil: ("the client's certificate chain", "the client's private key")
    }
  }

  /// Which servers are trusted. Files are read even if nothing is verified, so that their faults show.
  private func trust(_ files: TLSFiles) throws -> ServerTrust {
    let anchors = try self.anchors(files)
    let revocation = try self.revocation(files)
    var trust = ServerTrust(anchors.map { CertificateVerifier($0, revocation: revocation) })
    trust.names = try self.tls.nameRule
    trust.trustDomain = try self.tls.trustDomain
    trust.decision = self.tls.serverVerifier
    return trust
  }

  /// What the configuration trusts; nil if nothing is verified.
  private func anchors(_ files: TLSFiles) throws -> TrustAnchors? {
    let isNeeded = self.tls.certificateVerification != .none
    let (bytes, source): ([UInt8], String)
    switch self.tls.trustRoots {
    case .systemDefault:
      return isNeeded ? try self.systemTrustRoots.anchors() : nil
    case .spiffeBundleFile(let path, let trustDomain):
      let bundle = try SPIFFEBundle(
        try files.bytes(of: path),
        trustDomain: trustDomain,
        source: "the file \(path)"
      )
      return isNeeded ? TrustAnchors(bundle.authorities) : nil
    case .pemFile(let path):
      (bytes, source) = (try files.bytes(of: path), "the file \(path)")
    case .pemBytes(let pem):
      (bytes, source) = (pem, "the trust roots")
    }
    guard let anchors = TrustAnchors(pem: bytes) else { throw Self.noCertificate(bytes, source) }
    return isNeeded ? anchors : nil
  }

  private func revocation(_ files: TLSFiles) throws -> RevocationLists? {
    guard !self.tls.revocationLists.isEmpty else { return nil }
    return RevocationLists(
      try self.tls.revocationLists.flatMap { path in
        let bytes = try files.bytes(of: path)
        guard let lists = RevocationList.all(in: bytes) else {
          throw Self.unusable(
            "there is no readable certificate revocation list (PEM or DER) in the file \(path)\(Self.hint(bytes))"
          )
        }
        for list in lists {
          guard let problem = list.problem else { continue }
          throw Self.unusable(
            "the revocation list of '\(list.issuer)' in the file \(path) cannot be used: \(problem); use a complete list"
              + " with nextUpdate (RFC 5280)"
          )
        }
        return lists
      }
    )
  }

  private static func certificates(
    _ bytes: [UInt8],
    _ source: String
  ) throws(ConnectError) -> [NIOSSLCertificate] {
    guard let certificates = try? NIOSSLCertificate.fromPEMBytes(bytes), !certificates.isEmpty else {
      throw self.noCertificate(bytes, source)
    }
    return certificates
  }

  private static func privateKey(
    _ bytes: [UInt8],
    _ source: String
  ) throws(ConnectError) -> NIOSSLPrivateKey {
    guard let key = try? NIOSSLPrivateKey(bytes: bytes, format: .pem) else {
      throw self.unusable("there is no usable private key in PEM in \(source)\(self.hint(bytes))")
    }
    return key
  }

  private static func describe(_ error: any Error) -> String {
    if let message = (error as? ConnectError)?.message { return message }
    // The key itself has been read by then. Also happens while files are replaced one after the other.
    if case NIOSSLError.failedToLoadPrivateKey = error {
      return "the private key is not the one of the client's certificate"
    }
    return TLSAlert.text(error)
  }

  private static func noCertificate(_ bytes: [UInt8], _ source: String) -> ConnectError {
    self.unusable("there is no certificate in PEM in \(source)\(self.hint(bytes))")
  }

  private static func hint(_ bytes: [UInt8]) -> String {
    ByteOrderMark.saysUTF16(bytes) ? ", which is in UTF-16: save it as UTF-8" : ""
  }

  private static func unusable(_ message: String) -> ConnectError {
    ConnectError(code: .failedPrecondition, message: message)
  }
}

extension NIOHTTPClient.Configuration.TLS {
  /// The files whose changes are followed.
  fileprivate var filePaths: [String] {
    var paths: [String] = []
    switch self.trustRoots {
    case .pemFile(let path), .spiffeBundleFile(let path, _): paths.append(path)
    case .systemDefault, .pemBytes: break
    }
    paths += self.revocationLists
    if case .pemFiles(let chain, let privateKey) = self.clientCertificate { paths += [chain, privateKey] }
    return paths
  }
}
