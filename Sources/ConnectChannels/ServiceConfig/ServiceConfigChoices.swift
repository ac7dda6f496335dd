internal import Connect

/// Service configs in DNS, of which each client takes one (gRFC A2). They are a JSON list in a TXT record of
/// `_grpc_config.NAME`, with the attribute `grpc_config=`.
package struct ServiceConfigChoices: Sendable {
  /// What comes before the server's name in the name of the TXT record.
  package static let namePrefix = "_grpc_config."

  private static let attribute = "grpc_config="
  private static let fields = ["clientLanguage", "percentage", "clientHostname", "serviceConfig"]

  private struct Choice {
    /// Empty for all.
    var languages: [String]
    var percentage: Int?
    /// Empty for all.
    var hostnames: [String]
    var config: JSONNode
  }

  private let choices: [Choice]

  /// - Parameter json: The list of choices.
  /// - Throws: ``ServiceConfigError`` if any choice is invalid. Service configs themselves are not checked.
  package init(json: String) throws(ServiceConfigError) {
    var choices: [Choice] = []
    for element in try JSONNode(parsing: json).elements() { choices.append(try Self.choice(element)) }
    self.choices = choices
  }

  /// The choices in the TXT records of a name.
  ///
  /// - Parameter texts: The records, the strings of each joined.
  /// - Returns: Nil if no record has the attribute.
  /// - Throws: ``ServiceConfigError`` if the first record that has it is invalid.
  package init?(texts: [[UInt8]]) throws(ServiceConfigError) {
    let record = texts.first {
      $0.prefix(Self.attribute.utf8.count).map(ASCII.lowercased).elementsEqual(Self.attribute.utf8)
    }
    guard let record else { return nil }
    guard let json = String(validating: record.dropFirst(Self.attribute.utf8.count), as: UTF8.self) else {
      throw ServiceConfigError(path: "", problem: "the TXT record is not UTF-8")
    }
    try self.init(json: json)
  }

  /// The service config for this client, as JSON; nil if no choice is meant for it.
  ///
  /// - Parameters:
  ///   - hostname: The name of this machine, as the system tells it.
  ///   - language: The client's language.
  ///   - random: From 0 to 99; to be drawn once for each channel, so that its choice stays the same.
  package func select(hostname: String, language: String = "swift", random: Int) -> String? {
    self.choices.first { choice in
      (choice.languages.isEmpty || choice.languages.contains(language.lowercased()))
        && (choice.hostnames.isEmpty || choice.hostnames.contains(hostname))
        && random < choice.percentage ?? 100
    }?.config.value.description
  }

  private static func choice(_ node: JSONNode) throws(ServiceConfigError) -> Choice {
    for member in try node.members() where !self.fields.contains(member.name) {
      throw node.error(
        "the field \"\(member.name)\" is unknown; only \(self.fields.joined(separator: ", ")) exist"
      )
    }
    let config = try node.required("serviceConfig")
    _ = try config.members()
    return Choice(
      languages: try self.strings(node.member("clientLanguage")).map { $0.lowercased() },
      percentage: try node.member("percentage")?.integer(in: 0...100),
      hostnames: try self.strings(node.member("clientHostname")),
      config: config
    )
  }

  private static func strings(_ node: JSONNode?) throws(ServiceConfigError) -> [String] {
    var strings: [String] = []
    for element in try node?.elements() ?? [] { strings.append(try element.string()) }
    return strings
  }
}
