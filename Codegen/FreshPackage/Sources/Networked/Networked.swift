import Connect
import ConnectNIO

// Uses a transport, so that it is linked.
@main
struct Networked {
  static func main() async {
    let httpClient = NIOHTTPClient()
    let config = ProtocolClientConfig(host: "http://localhost:1", codec: JSONCodec())
    let client = ProtocolClient(httpClient: httpClient, config: config)
    let method = MethodSpec<String, String>(codablePath: "/test.Text/Echo", streamType: .unary)
    let response = await client.unary(method, "hello")
    guard response.code == .unavailable else { fatalError("\(response.code) where no server is") }
    await httpClient.shutdown()
    print("linked")
  }
}
