#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension XDSBootstrap {
  /// The variable that names the file.
  private static let fileVariable = "GRPC_XDS_BOOTSTRAP"
  /// The variable that has the text itself.
  private static let textVariable = "GRPC_XDS_BOOTSTRAP_CONFIG"

  /// Reads a bootstrap in JSON (gRFC A27, section "xDS Bootstrap File").
  ///
  /// Unknown keys are ignored. Of a server's `channel_creds`, the first of type `insecure` or `tls` is used.
  ///
  /// - Parameters:
  ///   - json: The text.
  ///   - source: Where the text came from, for errors.
  /// - Throws: ``XDSBootstrapError`` with all mistakes, each with its place.
  public init(parsing json: String, source: String = "the program") throws(XDSBootstrapError) {
    var reader = BootstrapReader()
    guard let bootstrap = reader.read(json) else {
      throw XDSBootstrapError(source: source, problems: reader.problems)
    }
    self = bootstrap
  }

  /// The bootstrap that the process's environment names, as in all of gRPC: ``ofEnvironment(_:)``.
  public static func ofEnvironment() throws(XDSBootstrapError) -> XDSBootstrap {
    try self.ofEnvironment(ProcessInfo.processInfo.environment)
  }

  /// The bootstrap that environment variables name: the file of `GRPC_XDS_BOOTSTRAP`, else the text in
  /// `GRPC_XDS_BOOTSTRAP_CONFIG`. An empty variable counts as unset. Reads the file at once.
  ///
  /// - Throws: ``XDSBootstrapError`` if none of the two is set, if the file cannot be read, or for what is wrong in the text.
  public static func ofEnvironment(_ variables: [String: String]) throws(XDSBootstrapError) -> XDSBootstrap {
    if let path = variables[self.fileVariable], !path.isEmpty {
      let source = "the file \(path), which \(self.fileVariable) names"
      guard let data = FileManager.default.contents(atPath: path) else {
        throw XDSBootstrapError(
          source: source,
          problems: [.init(path: "", problem: "the file cannot be read")]
        )
      }
      guard let text = String(validating: data, as: UTF8.self) else {
        throw XDSBootstrapError(
          source: source,
          problems: [.init(path: "", problem: "the file is no UTF-8 text")]
        )
      }
      return try XDSBootstrap(parsing: text, source: source)
    }
    if let text = variables[self.textVariable], !text.isEmpty {
      return try XDSBootstrap(parsing: text, source: "the variable \(self.textVariable)")
    }
    throw XDSBootstrapError(
      source: "the environment",
      problems: [
        .init(
          path: "",
          problem:
            "set \(self.fileVariable) to the path of a bootstrap file, or \(self.textVariable) to its text"
        )
      ]
    )
  }
}
