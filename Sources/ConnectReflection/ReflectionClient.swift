public import Connect

/// Asks a server what it serves, by gRPC's server reflection: `grpc.reflection.v1`, or `v1alpha` where the server has no `v1`.
///
/// ```swift
/// let reflection = ReflectionClient(client)
/// let files = try await reflection.files(containing: ["acme.v1.Users"])
/// let get = try files.descriptorPool().method("/acme.v1.Users/Get")
/// var request = DynamicMessage(get.input)
/// try request.set("name", to: "ada")
/// let answer = try await client.unary(get.spec, request).get()
/// ```
///
/// It works over each protocol of the client, and over HTTP/1.1: requests are sent in groups, each a stream of its own that
/// ends before the answers are read. All functions throw ``ConnectError``: `unimplemented` if the server has neither
/// version, `not_found` for a name that it does not know, `resource_exhausted` past ``Limits``, and `internal` for answers
/// that make no sense.
public struct ReflectionClient: Sendable {
  /// Bounds on what is taken from a server.
  public struct Limits: Sendable, Hashable {
    /// In bytes, of all file descriptors together.
    public var maximumBytes: Int
    /// How many files.
    public var maximumFiles: Int
    /// How many services.
    public var maximumServices: Int

    public init(
      maximumBytes: Int = 64 * 1024 * 1024,
      maximumFiles: Int = 10_000,
      maximumServices: Int = 10_000
    ) {
      self.maximumBytes = maximumBytes
      self.maximumFiles = maximumFiles
      self.maximumServices = maximumServices
    }

    /// 64 MiB, 10,000 files, 10,000 services. One answer is bounded by the client's
    /// `ProtocolClientConfig.Limits.maximumReceivedMessageSize`, too.
    public static var defaults: Limits { Limits() }
  }

  /// - Parameters:
  ///   - options: Of each call, such as headers for authentication. A timeout is that of each group of requests.
  ///   - limits: What the server may make the client hold.
  public init(
    _ client: ProtocolClient,
    options: CallOptions = CallOptions(),
    limits: Limits = .defaults
  ) {
  }

  /// The full names of the services, sorted.
  public func serviceNames() async throws -> [String] {
    throw ConnectError(code: .unimplemented)
  }

  /// The files that declare these symbols, with all that they import. No file is asked for twice.
  ///
  /// - Parameter symbols: Full names of services, messages, enums, extensions, or methods, also as `acme.v1.Users/Get`.
  public func files(containing symbols: [String]) async throws -> ProtoFileSet {
    throw ConnectError(code: .unimplemented)
  }

  /// The files of all services, with all that they import.
  public func allFiles() async throws -> ProtoFileSet {
    throw ConnectError(code: .unimplemented)
  }
}
