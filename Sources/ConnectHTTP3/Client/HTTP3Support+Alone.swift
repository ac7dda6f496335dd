public import ConnectNIO

extension HTTP3Support {
  /// HTTP/3 alone for `https` origins: without it, calls fail with `unavailable`. All protocols go over it, gRPC too. Other origins
  /// are served as without HTTP/3. An origin behind a proxy cannot be reached; its calls fail with `failed_precondition`.
  public static var alone: HTTP3Support { .alone(.defaults) }

  /// As ``alone``, with a configuration.
  public static func alone(_ configuration: HTTP3Configuration) -> HTTP3Support {
    HTTP3Support(configuration, isDiscovered: false)
  }

  init(_ configuration: HTTP3Configuration, isDiscovered: Bool) {
    let credentials = CredentialsCache()
    self.init(isDiscovered: isDiscovered, maximumHeaderListSize: configuration.maxHeaderListSize) {
      HTTP3Opener($0, configuration, credentials: credentials)
    }
  }
}
