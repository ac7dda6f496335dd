internal import Connect
internal import ConnectChannels
internal import ConnectNIO

/// Settings while they are being read.
package struct SettingsDraft {
  /// The keys that have values.
  var given: Set<String> = []
  var settings: ClientSettings
  var certificateChain: String?
  var privateKey: String?
  var keepalive: HTTP2Configuration.Keepalive
  var detectsOutliers = false
  var retry: MethodConfig.RetryPolicy

  init(_ defaults: ClientSettings) {
    self.settings = defaults
    self.keepalive = defaults.transport.http2.keepalive ?? .init(interval: .zero)
    self.retry = MethodConfig.RetryPolicy(
      maximumAttempts: 3,
      initialBackoff: .milliseconds(100),
      maximumBackoff: .seconds(1),
      backoffMultiplier: 2,
      retryableCodes: [.unavailable]
    )
  }

  private func has(_ prefix: String) -> String? {
    self.given.filter { $0.hasPrefix(prefix) }.min()
  }

  /// The settings, once all values have been applied.
  ///
  /// - Parameter report: Told of a key that does not fit to others, and why.
  consuming func finished(report: (_ key: String, _ problem: String) -> Void) -> ClientSettings {
    if self.settings.client.host.isEmpty, !self.given.contains("host") { report("host", "is missing") }
    switch (self.certificateChain, self.privateKey) {
    case (let chain?, let key?):
      self.settings.transport.tls.clientCertificate = .pemFiles(chain: chain, privateKey: key)
    case (.some, nil): report("tls.privateKey", "is missing: tls.certificateChain needs it")
    case (nil, .some): report("tls.certificateChain", "is missing: tls.privateKey needs it")
    case (nil, nil): break
    }
    if let key = self.has("keepalive.") {
      if self.keepalive.interval > .zero {
        self.settings.transport.http2.keepalive = self.keepalive
      } else if key != "keepalive.interval" {
        report("keepalive.interval", "is missing: \(key) needs it")
      }
    }
    if self.detectsOutliers {
      if let policy = self.settings.transport.channel.balancing {
        self.settings.transport.channel.balancing = .outlierDetection(.defaults, of: policy)
      } else {
        report("balancing.policy", "is missing: balancing.detectsOutliers needs it")
      }
    }
    if let key = self.has("retry.") { self.addRetries(key, report) }
    if self.given.contains("proxy.url"), self.given.contains("proxy.fromEnvironment") {
      report("proxy.fromEnvironment", "and proxy.url exclude each other: leave one out")
    }
    return self.settings
  }

  private mutating func addRetries(_ key: String, _ report: (String, String) -> Void) {
    guard self.given.contains("retry.maximumAttempts") else {
      return report("retry.maximumAttempts", "is missing: \(key) needs it")
    }
    guard !self.given.contains("serviceConfig") else {
      return report(
        "serviceConfig",
        "and \(key) exclude each other: put the retry policy into the service config"
      )
    }
    guard self.retry.maximumBackoff >= self.retry.initialBackoff else {
      return report("retry.maximumBackoff", "is shorter than retry.initialBackoff")
    }
    var config = self.settings.transport.channel.serviceConfig ?? ServiceConfig()
    let forAll = MethodConfig.Name()
    if let index = config.methods.firstIndex(where: { $0.names.contains(forAll) }) {
      config.methods[index].attempts = .retry(self.retry)
    } else {
      config.methods.append(MethodConfig(names: [forAll], attempts: .retry(self.retry)))
    }
    self.settings.transport.channel.serviceConfig = config
  }
}
