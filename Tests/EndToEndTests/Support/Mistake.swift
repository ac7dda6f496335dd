internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import XCTest

/// A call with a typical mistake of new users, and the error that explains the mistake.
struct Mistake {
  static let echo = "/connect.test.v1.TestService/Echo"

  var name: String
  var host: String
  var networkProtocol: NetworkProtocol
  var version: NIOHTTPClient.Configuration.HTTPVersion
  var method: String
  var isStream: Bool
  var connectTimeout: Duration
  var code: Code
  /// `HOST` stands for the host, and `…` for any text.
  var message: String

  init(
    _ name: String,
    _ host: String,
    _ networkProtocol: NetworkProtocol,
    version: NIOHTTPClient.Configuration.HTTPVersion = .automatic,
    method: String = Mistake.echo,
    isStream: Bool = false,
    connectTimeout: Duration = .seconds(10),
    _ code: Code,
    _ message: String
  ) {
    self.name = name
    self.host = host
    self.networkProtocol = networkProtocol
    self.version = version
    self.method = method
    self.isStream = isStream
    self.connectTimeout = connectTimeout
    self.code = code
    self.message = message
  }

  /// Makes the call and checks its error.
  func check(file: StaticString = #filePath, line: UInt = #line) async throws {
    let what = "\(self.name), \(self.networkProtocol), \(self.version)"
    let error = try await self.error()
    XCTAssertEqual(error?.code, self.code, "\(what): \(String(reflecting: error))", file: file, line: line)
    let message = (error?.message ?? "").replacing(self.host, with: "HOST")
    guard self.message.contains("…") else {
      XCTAssertEqual(message, self.message, what, file: file, line: line)
      return
    }
    for part in self.message.split(separator: "…") {
      XCTAssertTrue(message.contains(part), "\(what): no '\(part)' in \(message)", file: file, line: line)
    }
  }

  private func error() async throws -> ConnectError? {
    let configuration = NIOHTTPClient.Configuration(
      version: self.version,
      timeouts: .init(connect: self.connectTimeout)
    )
    let httpClient = NIOHTTPClient(configuration: configuration)
    var config = ProtocolClientConfig.forTests(host: self.host)
    config.networkProtocol = self.networkProtocol
    let client = ProtocolClient(httpClient: httpClient, config: config)
    let error =
      self.isStream
      ? await client.serverStream(streamMethod(self.method), CountRequest()).results.collect().error
      : await client.unary(unaryMethod(self.method), EchoRequest()).error
    try await shutDown(httpClient)
    return error
  }
}
