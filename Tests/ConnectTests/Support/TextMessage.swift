import Connect

/// A message for tests of the engine: a text in JSON.
struct Text: Codable, Sendable, Equatable, ExpressibleByStringLiteral {
  var text: String

  init(_ text: String) { self.text = text }
  init(stringLiteral value: String) { self.text = value }

  init(from decoder: any Decoder) throws {
    self.text = try decoder.singleValueContainer().decode(String.self)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(self.text)
  }
}

typealias TextMethod = MethodSpec<Text, Text>

extension MethodSpec where Input == Text, Output == Text {
  static let unary = TextMethod(codablePath: "/test.Text/Unary", streamType: .unary)
  static let serverStream = TextMethod(codablePath: "/test.Text/ServerStream", streamType: .serverStream)
  static let clientStream = TextMethod(codablePath: "/test.Text/ClientStream", streamType: .clientStream)
  static let bidirectional = TextMethod(codablePath: "/test.Text/Bidi", streamType: .bidirectionalStream)
}

extension ProtocolClient {
  /// A client of a scripted transport that speaks JSON.
  static func scripted(
    _ transport: ScriptedTransport,
    interceptors: [InterceptorFactory] = [],
    timeout: Duration? = nil,
    configure: (inout ProtocolClientConfig) -> Void = { _ in }
  ) -> ProtocolClient {
    var config = ProtocolClientConfig(
      host: "http://scripted.test",
      codec: JSONCodec(),
      interceptors: interceptors,
      timeout: timeout
    )
    configure(&config)
    return ProtocolClient(httpClient: transport, config: config)
  }
}
