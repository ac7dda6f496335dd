/// Where control planes are, and who this client is: what gRPC's bootstrap file says.
///
/// The format is that of gRFC A27, with what A29, A47, A65 and A71 add.
public struct XDSBootstrap: Sendable, Hashable {
  /// A control plane.
  public struct Server: Sendable, Hashable {
    /// Where it is: a target such as `dns:///control.example.com:443`, or a host and a port.
    public var uri: String
    /// How connections to it are made.
    public var credentials: ChannelCredentials
    /// Whether resources stay in use that this server deletes (`server_features`: `ignore_resource_deletion`).
    public var ignoresResourceDeletion: Bool

    /// A control plane.
    public init(uri: String, credentials: ChannelCredentials, ignoresResourceDeletion: Bool = false) {
      self.uri = uri
      self.credentials = credentials
      self.ignoresResourceDeletion = ignoresResourceDeletion
    }
  }

  /// How connections to a control plane are made: the first of the file's `channel_creds` that is known.
  public enum ChannelCredentials: Sendable, Hashable {
    /// Without TLS.
    case insecure
    /// With TLS (gRFC A65).
    ///
    /// - Parameters:
    ///   - roots: A file with certificates of authorities, in PEM; nil for those of the system.
    ///   - identity: Files with the client's certificates and its key, in PEM; nil for none.
    ///   - refreshInterval: How often the files are looked at.
    case tls(roots: String?, identity: Identity?, refreshInterval: Duration)

    /// Files with certificates and their key, in PEM.
    public struct Identity: Sendable, Hashable {
      /// The file with the certificates.
      public var certificates: String
      /// The file with the key.
      public var key: String

      /// Two files.
      public init(certificates: String, key: String) {
        self.certificates = certificates
        self.key = key
      }
    }
  }

  /// Who this client is.
  public struct Node: Sendable, Hashable {
    /// The name of this client.
    public var id: String
    /// The group of clients that it belongs to.
    public var cluster: String
    /// Where it runs.
    public var locality: XDSLocality
    /// More facts for the control plane, as a JSON object; empty for none.
    public var metadata: String

    /// A client.
    public init(
      id: String = "",
      cluster: String = "",
      locality: XDSLocality = XDSLocality(),
      metadata: String = ""
    ) {
      self.id = id
      self.cluster = cluster
      self.locality = locality
      self.metadata = metadata
    }
  }

  /// Where certificates come from: the plug-in `file_watcher` (gRFC A29).
  public struct CertificateProvider: Sendable, Hashable {
    /// Files with this client's certificates and their key; nil for none.
    public var identity: ChannelCredentials.Identity?
    /// A file with certificates of authorities; nil for none.
    public var roots: String?
    /// How often the files are looked at; 10 minutes by default.
    public var refreshInterval: Duration

    /// Files.
    public init(
      identity: ChannelCredentials.Identity? = nil,
      roots: String? = nil,
      refreshInterval: Duration = .seconds(600)
    ) {
      self.identity = identity
      self.roots = roots
      self.refreshInterval = refreshInterval
    }
  }

  /// Names that other control planes are responsible for (gRFC A47).
  public struct Authority: Sendable, Hashable {
    /// The control planes; empty for those of the bootstrap.
    public var servers: [Server]
    /// The name of the listener for a target, with `%s` for its name; nil for `xdstp://AUTHORITY/envoy.config.listener.v3.Listener/%s`.
    public var clientListenerTemplate: String?

    /// An authority.
    public init(servers: [Server] = [], clientListenerTemplate: String? = nil) {
      self.servers = servers
      self.clientListenerTemplate = clientListenerTemplate
    }
  }

  /// The control planes in order of preference: a later one is asked while the earlier ones cannot be reached (gRFC A71). At
  /// least one.
  public var servers: [Server]
  /// Who this client is.
  public var node: Node
  /// By name.
  public var certificateProviders: [String: CertificateProvider]
  /// By name.
  public var authorities: [String: Authority]
  /// The name of the listener for a target without an authority, with `%s` for its name; `%s` by default.
  public var defaultClientListenerTemplate: String

  /// A bootstrap that the program makes.
  public init(
    servers: [Server],
    node: Node = Node(),
    certificateProviders: [String: CertificateProvider] = [:],
    authorities: [String: Authority] = [:],
    defaultClientListenerTemplate: String = "%s"
  ) {
    self.servers = servers
    self.node = node
    self.certificateProviders = certificateProviders
    self.authorities = authorities
    self.defaultClientListenerTemplate = defaultClientListenerTemplate
  }
}
