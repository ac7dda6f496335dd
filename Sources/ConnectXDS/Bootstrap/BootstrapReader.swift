internal import Connect
internal import ConnectChannels

/// Reads a bootstrap, and collects all mistakes. Unknown keys are ignored, as gRFC A27 demands.
struct BootstrapReader {
  private(set) var problems: [XDSBootstrapError.Problem] = []

  private static let xdstp = "xdstp://"

  /// The bootstrap as far as it can be read; nil if there was a mistake.
  mutating func read(_ text: String) -> XDSBootstrap? {
    let root: JSONNode
    do throws(JSONParser.Failure) {
      root = JSONNode(try JSONParser.parse(text))
    } catch {
      self.problems.append(
        .init(path: "", problem: "no JSON: line \(error.line), column \(error.column): \(error.problem)")
      )
      return nil
    }
    let bootstrap = XDSBootstrap(
      servers: self.servers(self.required("xds_servers", of: root)),
      node: self.node(self.member("node", of: root)),
      certificateProviders: self.table("certificate_providers", of: root) { $0.provider($1) },
      authorities: self.table("authorities", of: root) { $0.authority($1, name: $2) },
      defaultClientListenerTemplate:
        self.string("client_default_listener_resource_name_template", of: root) ?? "%s"
    )
    return self.problems.isEmpty ? bootstrap : nil
  }

  // MARK: - Parts

  private mutating func servers(_ node: JSONNode?) -> [XDSBootstrap.Server] {
    guard let node, let elements = self.attempt({ () throws(ServiceConfigError) in try node.elements() })
    else {
      return []
    }
    if elements.isEmpty { self.add("has no server; name at least one control plane", at: node) }
    return elements.compactMap { self.server($0) }
  }

  private mutating func server(_ node: JSONNode) -> XDSBootstrap.Server? {
    let uri = self.required("server_uri", of: node).flatMap { node in
      self.attempt { () throws(ServiceConfigError) in try node.string() }
    }
    if let uri, uri.isEmpty {
      self.add("\"server_uri\" is empty; write the control plane's host and port", at: node)
    }
    let credentials = self.credentials(self.required("channel_creds", of: node))
    let features = self.elements("server_features", of: node).compactMap { feature in
      // Unknown features are ignored, whatever their type.
      if case .string(let name) = feature.value { name } else { nil }
    }
    guard let uri, let credentials else { return nil }
    return XDSBootstrap.Server(
      uri: uri,
      credentials: credentials,
      ignoresResourceDeletion: features.contains("ignore_resource_deletion")
    )
  }

  /// The first that is known; all that are known are checked.
  private mutating func credentials(_ node: JSONNode?) -> XDSBootstrap.ChannelCredentials? {
    guard let node, let list = self.attempt({ () throws(ServiceConfigError) in try node.elements() }) else {
      return nil
    }
    var first: XDSBootstrap.ChannelCredentials?
    var types: [String] = []
    var isKnown = false
    for element in list {
      let type = self.required("type", of: element).flatMap { node in
        self.attempt { () throws(ServiceConfigError) in try node.string() }
      }
      guard let type else { continue }
      types.append("\"\(type)\"")
      guard type == "insecure" || type == "tls" else { continue }
      isKnown = true
      let credentials = type == "insecure" ? .insecure : self.tls(self.member("config", of: element))
      first = first ?? credentials
    }
    if !isKnown {
      let found = types.isEmpty ? "none" : types.joined(separator: ", ")
      self.add("none of the types is known: expected \"insecure\" or \"tls\", found \(found)", at: node)
    }
    return first
  }

  private mutating func tls(_ node: JSONNode?) -> XDSBootstrap.ChannelCredentials {
    guard let node else { return .tls(roots: nil, identity: nil, refreshInterval: .seconds(600)) }
    let files = self.files(node)
    return .tls(roots: files.roots, identity: files.identity, refreshInterval: files.refreshInterval)
  }

  /// The files of `tls` and of `file_watcher`.
  private mutating func files(_ node: JSONNode) -> XDSBootstrap.CertificateProvider {
    let certificates = self.string("certificate_file", of: node)
    let key = self.string("private_key_file", of: node)
    if (certificates == nil) != (key == nil) {
      self.add("set both \"certificate_file\" and \"private_key_file\", or none of the two", at: node)
    }
    var files = XDSBootstrap.CertificateProvider(roots: self.string("ca_certificate_file", of: node))
    if let certificates, let key { files.identity = .init(certificates: certificates, key: key) }
    if let interval = self.member("refresh_interval", of: node) {
      let duration = self.attempt { () throws(ServiceConfigError) in try interval.duration() }
      files.refreshInterval = duration ?? files.refreshInterval
    }
    return files
  }

  private mutating func provider(_ node: JSONNode) -> XDSBootstrap.CertificateProvider? {
    let plugin = self.required("plugin_name", of: node).flatMap { node in
      self.attempt { () throws(ServiceConfigError) in try node.string() }
    }
    guard let plugin else { return nil }
    guard plugin == "file_watcher" else {
      self.add("the plug-in \"\(plugin)\" is not known: expected \"file_watcher\"", at: node)
      return nil
    }
    guard let config = self.member("config", of: node) else {
      self.add("\"config\" is missing: it names the files of the provider", at: node)
      return nil
    }
    let files = self.files(config)
    if files.identity == nil, files.roots == nil {
      self.add("set \"certificate_file\" with \"private_key_file\", or \"ca_certificate_file\"", at: config)
    }
    return files
  }

  private mutating func authority(_ node: JSONNode, name: String) -> XDSBootstrap.Authority? {
    let template = self.string("client_listener_resource_name_template", of: node)
    let prefix = "\(Self.xdstp)\(name)/"
    if let template, !template.isEmpty, !template.hasPrefix(prefix) {
      self.add("\"client_listener_resource_name_template\" has to begin with \"\(prefix)\"", at: node)
    }
    // Unlike that of the bootstrap, this list may be empty: then the bootstrap's servers count.
    let servers = self.elements("xds_servers", of: node).compactMap { self.server($0) }
    return XDSBootstrap.Authority(
      servers: servers,
      clientListenerTemplate: template.flatMap { $0.isEmpty ? nil : $0 }
    )
  }

  private mutating func node(_ node: JSONNode?) -> XDSBootstrap.Node {
    guard let node else { return XDSBootstrap.Node() }
    var result = XDSBootstrap.Node(
      id: self.string("id", of: node) ?? "",
      cluster: self.string("cluster", of: node) ?? ""
    )
    if let locality = self.member("locality", of: node) {
      result.locality = XDSLocality(
        region: self.string("region", of: locality) ?? "",
        zone: self.string("zone", of: locality) ?? "",
        subZone: self.string("sub_zone", of: locality) ?? ""
      )
    }
    if let metadata = self.member("metadata", of: node) {
      let members = self.attempt { () throws(ServiceConfigError) in try metadata.members() }
      if members != nil { result.metadata = metadata.value.description }
    }
    return result
  }
}

// MARK: - Values, and mistakes

extension BootstrapReader {
  private mutating func add(_ problem: String, at node: JSONNode) {
    self.problems.append(.init(path: node.path, problem: problem))
  }

  private mutating func attempt<Value>(_ read: () throws(ServiceConfigError) -> Value) -> Value? {
    do throws(ServiceConfigError) {
      return try read()
    } catch {
      self.problems.append(.init(path: error.path, problem: error.problem))
      return nil
    }
  }

  private mutating func required(_ name: String, of node: JSONNode) -> JSONNode? {
    self.attempt { () throws(ServiceConfigError) in try node.required(name) }
  }

  private mutating func member(_ name: String, of node: JSONNode) -> JSONNode? {
    self.attempt { () throws(ServiceConfigError) in try node.member(name) } ?? nil
  }

  private mutating func string(_ name: String, of node: JSONNode) -> String? {
    guard let member = self.member(name, of: node) else { return nil }
    return self.attempt { () throws(ServiceConfigError) in try member.string() }
  }

  private mutating func elements(_ name: String, of node: JSONNode) -> [JSONNode] {
    guard let member = self.member(name, of: node) else { return [] }
    return self.attempt { () throws(ServiceConfigError) in try member.elements() } ?? []
  }

  private mutating func table<Value>(
    _ name: String,
    of node: JSONNode,
    _ read: (inout BootstrapReader, JSONNode, String) -> Value?
  ) -> [String: Value] {
    guard let member = self.member(name, of: node) else { return [:] }
    let members = self.attempt { () throws(ServiceConfigError) in try member.members() } ?? []
    var result: [String: Value] = [:]
    for entry in members {
      let path = "\(member.path)[\"\(entry.name)\"]"
      if let value = read(&self, JSONNode(entry.value, path: path), entry.name) { result[entry.name] = value }
    }
    return result
  }

  private mutating func table<Value>(
    _ name: String,
    of node: JSONNode,
    _ read: (inout BootstrapReader, JSONNode) -> Value?
  ) -> [String: Value] {
    self.table(name, of: node) { reader, node, _ in read(&reader, node) }
  }
}
