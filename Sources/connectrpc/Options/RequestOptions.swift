import ArgumentParser
import Connect

/// The method to call, its request, and how requests are written.
struct RequestOptions: ParsableArguments {
  enum CodecName: String, ExpressibleByArgument, CaseIterable {
    case proto, json
  }

  @Argument(
    help: ArgumentHelp(
      "The server and the method: https://host:port/package.Service/Method.",
      valueName: "url"
    )
  )
  var url: String

  @Option(
    name: [.short, .customLong("data")],
    help: ArgumentHelp(
      "The request as JSON; @file reads a file, @- or @ standard input. Without it, the request is empty.",
      valueName: "json"
    )
  )
  var data: [String] = []

  @Option(help: "How messages are encoded.")
  var codec = CodecName.proto

  @Flag(name: .customLong("compress"), help: "Compress requests with gzip.")
  var compresses = false

  func clientConfig(for host: String, _ server: ServerOptions) -> ProtocolClientConfig {
    var config = server.clientConfig(for: host, codec: self.codec == .json ? JSONCodec() : ProtoCodec())
    if self.compresses {
      config.compression = Compression(requests: GzipCompressionPool(), minimumRequestBytes: 0)
    }
    return config
  }
}
