internal import Connect
internal import NIOCore

/// Signs each request as it goes to the network: HMAC-SHA256 (RFC 2104) of its method, target, date, and the digest of its
/// body, which is framed and compressed. ``RequestSignature`` says what exactly, and how a server checks it.
///
/// ```swift
/// let transport = WireHTTPClient(
///   NIOHTTPClient(),
///   interceptors: [{ _ in RequestSigner(keyID: "k1", secret: secret) }]
/// )
/// ```
///
/// The signature is in a header if the whole body is known when the request starts, as that of unary calls is. Otherwise
/// ``Options/streamedBodies`` says what happens. List the signer last, or in front of interceptors that only
/// look.
public final class RequestSigner: WireInterceptor {
  /// A key that client and server share.
  public struct Key: Sendable {
    /// Tells the server which key it is; no header is sent if it is empty.
    public var id: String
    /// The secret bytes. 32 random ones are a good choice.
    public var secret: [UInt8]

    /// A key.
    public init(id: String, secret: [UInt8]) {
      self.id = id
      self.secret = secret
    }
  }

  /// What a signer does with bodies that are not known when the request starts.
  public enum StreamedBodies: Sendable, Hashable {
    /// Waits for the whole body, and signs it in a header. A body with more than `maximumBytes` fails with
    /// `resource_exhausted`. Streams in which the server answers before the client has finished do not work with it.
    case gathered(maximumBytes: Int)
    /// Signs the body in a trailer, when it ends. HTTP/2 and HTTP/3 send trailers in a frame of their own, HTTP/1.1 behind
    /// the last chunk of the body (RFC 9112, section 7.1.2). Many servers and proxies drop trailers of requests, so try
    /// yours.
    case trailer
  }

  /// How a signer works.
  public struct Options: Sendable {
    /// What happens to bodies that are not known when the request starts.
    public var streamedBodies: StreamedBodies
    /// The names of the fields.
    public var fields: RequestSignature.Fields
    /// The clock of the date that is signed.
    public var wallClock: WallClock

    /// Options as given; what is left out is as in ``defaults``.
    public init(
      streamedBodies: StreamedBodies = .trailer,
      fields: RequestSignature.Fields = .defaults,
      wallClock: WallClock = .system
    ) {
      self.streamedBodies = streamedBodies
      self.fields = fields
      self.wallClock = wallClock
    }

    /// Trailers for streamed bodies, the default fields, and the clock of the system.
    public static var defaults: Options { Options() }
  }

  private typealias HeadProceed = Proceed<WireHeadVerb<HTTPStreamRequest>>

  private let options: Options
  /// Nil if the key is known.
  private let provider: (@Sendable () async throws -> Key)?
  private var key: Key?
  private var keyTask: Task<Void, Never>?
  /// What waits for the key, and goes on in this order.
  private var waiting: [(Key) -> Void] = []
  private var date = ""
  private var head: HTTPStreamRequest?
  /// Of a request whose body is being gathered.
  private var heldHead: HeadProceed?
  private var hash = SHA256()
  private var body = ByteBuffer()

  /// A signer for one exchange, with a fixed key.
  public init(keyID: String = "", secret: [UInt8], options: Options = .defaults) {
    self.options = options
    self.provider = nil
    self.key = Key(id: keyID, secret: secret)
  }

  /// A signer for one exchange that asks for its key.
  ///
  /// - Parameters:
  ///   - options: How it works.
  ///   - key: Fetches the key; it should keep it for other exchanges. What it throws becomes the error of the exchange:
  ///     `ConnectError` as it is, others as `unauthenticated`. Its task is cancelled when the call has ended.
  public init(options: Options = .defaults, key: @escaping @Sendable () async throws -> Key) {
    self.options = options
    self.provider = key
  }

  public func wireFunction() -> WireFunction {
    WireFunction(
      requestHeadFunction: { request, proceed in self.begin(request, proceed) },
      requestChunkFunction: { bytes, proceed in self.add(bytes, proceed) },
      requestEndFunction: { trailers, proceed in self.finish(trailers, proceed) },
      endFunction: { _ in self.release() }
    )
  }

  private func begin(_ request: HTTPStreamRequest, _ proceed: HeadProceed) {
    // Of a complete body, it would be kept as long as the response takes.
    if request.isStreamed { self.head = request }
    if let provider = self.provider { self.fetchKey(provider, proceed) }
    if request.isStreamed, case .gathered = self.options.streamedBodies {
      self.heldHead = proceed
      return
    }
    self.withKey { key in
      self.date = HTTPDate.text(self.options.wallClock.now.components.seconds)
      if let body = request.completeBody {
        proceed(self.signed(request, body, key))
      } else {
        proceed(self.announcing(key, request))
      }
    }
  }

  private func add(_ bytes: ByteBuffer, _ proceed: Proceed<WireChunkVerb>) {
    guard case .gathered(let limit) = self.options.streamedBodies else {
      self.hash.update(bytes)
      return proceed(bytes)
    }
    // A `ByteBuffer` has room for less than 4 GiB.
    guard self.body.readableBytes + bytes.readableBytes <= min(limit, Int(Int32.max)) else {
      return proceed.fail(
        ConnectError(
          code: .resourceExhausted,
          message:
            "the body of the request has more than \(limit) bytes, so it cannot be gathered and signed in a header; RequestSigner can sign it in a trailer"
        )
      )
    }
    self.body.writeImmutableBuffer(bytes)
    proceed.drop()
  }

  private func finish(_ trailers: Headers, _ proceed: Proceed<WireEndVerb>) {
    self.withKey { key in
      guard let head = self.head else { return proceed(trailers) }
      guard let heldHead = self.heldHead else { return proceed(self.signed(trailers, of: head, key)) }
      self.heldHead = nil
      self.date = HTTPDate.text(self.options.wallClock.now.components.seconds)
      let body = self.body
      self.body = ByteBuffer()
      var request = self.signed(head, body, key)
      // A complete body has no trailers.
      if trailers.isEmpty { request.body = .complete(body) }
      heldHead(request)
      proceed(trailers, after: trailers.isEmpty ? [] : [body])
    }
  }

  private func release() {
    self.keyTask?.cancel()
    self.keyTask = nil
    self.waiting = []
    self.heldHead = nil
    self.body = ByteBuffer()
  }

  // MARK: Signing

  /// The request with all fields but the signature, which follows as a trailer.
  private func announcing(_ key: Key, _ request: HTTPStreamRequest) -> HTTPStreamRequest {
    var request = request
    let fields = self.options.fields
    request.headers[fields.date] = [self.date]
    if !key.id.isEmpty { request.headers[fields.key] = [key.id] }
    return request
  }

  private func signed(_ request: HTTPStreamRequest, _ body: ByteBuffer, _ key: Key) -> HTTPStreamRequest {
    var signed = self.announcing(key, request)
    signed.headers[self.options.fields.signature] = [
      self.signature(of: request, digest: SHA256.digest(body), key)
    ]
    return signed
  }

  private func signed(_ trailers: Headers, of head: HTTPStreamRequest, _ key: Key) -> Headers {
    var trailers = trailers
    trailers[self.options.fields.signature] = [self.signature(of: head, digest: self.hash.digest(), key)]
    return trailers
  }

  private func signature(of request: HTTPStreamRequest, digest: [UInt8], _ key: Key) -> String {
    RequestSignature(
      method: request.method.rawValue,
      target: request.target,
      date: self.date,
      bodyDigest: Hexadecimal.text(digest)
    ).value(secret: key.secret)
  }

  // MARK: The key

  /// Calls `body` with the key: at once if it is known, else when it is.
  private func withKey(_ body: @escaping (Key) -> Void) {
    if let key = self.key { body(key) } else { self.waiting.append(body) }
  }

  /// - Parameter proceed: Of the head, which waits for the key.
  private func fetchKey(_ provider: @escaping @Sendable () async throws -> Key, _ proceed: HeadProceed) {
    self.keyTask = proceed.task {
      do {
        let key = try await provider()
        self.key = key
        let waiting = self.waiting
        self.waiting = []
        for body in waiting { body(key) }
      } catch {
        proceed.fail(
          error as? ConnectError
            ?? ConnectError(
              code: .unauthenticated,
              message: "there is no key to sign the request with: \(error)"
            )
        )
      }
    }
  }
}
