import Foundation

extension Generation {
  /// A target of the package.
  struct Neighbour {
    var module: String
    var folder: URL
    /// Whether the target that is generated for depends on it.
    var isDependency: Bool
  }

  /// Checks that mocks can use the clients that they stand for. Otherwise the compiler has an error for each line of them.
  ///
  /// - Parameter neighbours: The other targets of the package.
  /// - Throws: ``PluginError`` that says which option to change in which file.
  func checkMocks(_ neighbours: [Neighbour]) throws {
    guard self.configuration.mocks, !self.configuration.stubs else { return }
    let modules = self.configuration.options["ExtraModuleImports"]?.values ?? []
    let clients = neighbours.compactMap { neighbour -> (Neighbour, Configuration, URL)? in
      let file = neighbour.folder.appending(path: Configuration.fileName)
      // Its own target says what is wrong with a file.
      guard let configuration = try? Configuration(contentsOf: file), configuration.stubs else { return nil }
      return (neighbour, configuration, file)
    }
    if modules.isEmpty, let (neighbour, _, _) = clients.first(where: { $0.0.isDependency }),
      !self.hasOwnClients
    {
      throw PluginError(
        """
        \(self.configurationFile.path) asks for mocks, and does not say which module has the clients: add \
        "ExtraModuleImports": ["\(neighbour.module)"] to its "options".
        """
      )
    }
    for (neighbour, configuration, file) in clients where modules.contains(neighbour.module) {
      let seen = min(
        configuration.visibility,
        configuration.messages ? configuration.messageVisibility : .public
      )
      let wanted = max(self.configuration.visibility, .package)
      guard seen < wanted else { continue }
      throw PluginError(
        """
        \(self.configurationFile.path) asks for \(self.configuration.visibility == .public ? "public " : "")mocks of the \
        clients of \(neighbour.module), which are \(seen.name) there: add "options": { "Visibility": "\(wanted.rawValue)" } \
        to \(file.path).
        """
      )
    }
  }

  /// Whether the target has clients that were generated before, and committed.
  private var hasOwnClients: Bool {
    let folder = self.configurationFile.deletingLastPathComponent()
    let files = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
    return files.contains { $0.hasSuffix(".connect.swift") }
  }
}

/// Who may use what is generated.
private enum Visibility: String, CaseIterable, Comparable {
  case `internal` = "Internal"
  case package = "Package"
  case `public` = "Public"

  var name: String { self.rawValue.lowercased() }

  static func < (left: Visibility, right: Visibility) -> Bool {
    let order = self.allCases
    return order.firstIndex(of: left) ?? 0 < order.firstIndex(of: right) ?? 0
  }
}

extension Configuration {
  /// The generators refuse other values.
  fileprivate var visibility: Visibility { Self.visibility(self.options) ?? .internal }

  fileprivate var messageVisibility: Visibility { Self.visibility(self.messageOptions) ?? self.visibility }

  private static func visibility(_ options: [String: OptionValue]) -> Visibility? {
    options["Visibility"]?.values.last.flatMap { Visibility(rawValue: $0) }
  }
}
