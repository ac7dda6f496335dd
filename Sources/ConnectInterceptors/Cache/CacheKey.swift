public import Connect
public import NIOCore

/// The key of a response: the method, the request's bytes, and whatever else the response may depend on.
public struct CacheKey: Sendable {
  /// The server that the call goes to.
  public let origin: Origin
  /// The method's path.
  public let path: String
  /// The query of the request's URL; nil for none.
  public let query: String?
  /// The host that the call told the server in place of the origin's; nil for none. See `CallOptions.authority`.
  public var authority: String? { self.callAuthority?.authority }
  /// Names the codec, so the encoding of the request and of the response.
  public let contentType: String
  /// The request message as it was encoded.
  public let message: ByteBuffer
  /// Headers that the response may depend on, by name.
  public let headers: [Headers.Field]
  /// Whose response it is, if the caller says so; see ``CachePartition``.
  public let partition: String?
  /// Whose response it is, if the transport authenticates the client to servers: a number of the client, unique in the
  /// process. Else nil. See `HTTPClientInterface.authenticatesClient`.
  public let clientIdentity: UInt64?
  private let callAuthority: CallDestination?
  private let hash: Int

  init(
    _ request: HTTPRequest<ByteBuffer>,
    headers: [Headers.Field],
    partition: String?,
    clientIdentity: UInt64?
  ) {
    self.origin = request.url.origin
    self.path = request.url.path
    self.query = request.url.query
    let authority = request.authority?.lowercased()
    self.callAuthority = CallDestination(authority)
    self.contentType = request.contentType
    self.message = request.message
    self.headers = headers
    self.partition = partition
    self.clientIdentity = clientIdentity
    var hasher = Hasher()
    hasher.combine(self.origin)
    hasher.combine(self.path)
    hasher.combine(self.query)
    hasher.combine(authority)
    hasher.combine(self.contentType)
    hasher.combine(self.message)
    hasher.combine(self.headers)
    hasher.combine(self.partition)
    hasher.combine(self.clientIdentity)
    self.hash = hasher.finalize()
  }

  private init(_ other: CacheKey, message: ByteBuffer, adding fields: [Headers.Field] = []) {
    self.origin = other.origin
    self.path = other.path
    self.query = other.query
    self.callAuthority = other.callAuthority
    self.contentType = other.contentType
    self.message = message
    self.headers = other.headers + fields
    self.partition = other.partition
    self.clientIdentity = other.clientIdentity
    guard !fields.isEmpty else {
      self.hash = other.hash
      return
    }
    var hasher = Hasher()
    hasher.combine(other.hash)
    hasher.combine(fields)
    self.hash = hasher.finalize()
  }

  /// Whether the key certainly tells users apart. A cookie may be that of a balancer, which many users have.
  var isPersonal: Bool {
    self.partition != nil || self.clientIdentity != nil
      || self.headers.contains { $0.name == "authorization" }
  }

  /// The key of the response's variant for a request with these headers.
  ///
  /// - Parameter names: The headers that the response varies by.
  func variant(by names: [String], _ headers: Headers) -> CacheKey {
    // With the names, so that no variant's key equals this key.
    let marker = Headers.Field(name: "vary", value: names.joined(separator: ","))
    return CacheKey(self, message: self.message, adding: [marker] + headers.fields(named: names))
  }

  /// The same key without unused memory, to be stored.
  var compact: CacheKey {
    CacheKey(self, message: self.message.compact)
  }

  /// About how many bytes of memory it takes.
  public var byteCount: Int {
    self.headers.reduce(self.path.utf8.count + self.message.readableBytes + 200) { $0 + $1.byteCount }
  }
}

extension CacheKey: Hashable {
  public static func == (lhs: CacheKey, rhs: CacheKey) -> Bool {
    lhs.hash == rhs.hash && lhs.path == rhs.path && lhs.message == rhs.message && lhs.headers == rhs.headers
      && lhs.partition == rhs.partition && lhs.contentType == rhs.contentType && lhs.origin == rhs.origin
      && lhs.query == rhs.query && lhs.authority == rhs.authority && lhs.clientIdentity == rhs.clientIdentity
  }

  /// The hash is made once, since keys may be long and are looked up under a lock.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(self.hash)
  }
}

/// Headers may hold tokens, which must not get into logs.
extension CacheKey: CustomStringConvertible, CustomReflectable {
  public var description: String { "CacheKey(\(self.path), \(self.message.readableBytes) bytes)" }
  public var customMirror: Mirror { Mirror(self, children: ["path": self.path]) }
}

extension ByteBuffer {
  /// A copy of the readable bytes; a slice keeps its whole underlying buffer in memory.
  var compact: ByteBuffer { ByteBuffer(bytes: self.readableBytesView) }
}

extension Headers.Field {
  /// About how many bytes of memory it takes.
  var byteCount: Int { self.name.utf8.count + self.value.utf8.count + 32 }
}
