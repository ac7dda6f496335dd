import Connect
import ConnectNIO
import Eliza

/// Says a sentence to Eliza, and prints what she answers.
///
///     swift build && .build/debug/FirstCall https://demo.connectrpc.com "I feel tired."
@main
struct FirstCall {
  static func main() async {
    let arguments = CommandLine.arguments
    let host = arguments.count > 1 ? arguments[1] : "https://demo.connectrpc.com"
    let sentence = arguments.count > 2 ? arguments[2] : "Hello"

    let httpClient = NIOHTTPClient()
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(host: host, timeout: .seconds(10))
    )
    let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)

    do {
      let answer = try await eliza.say(.with { $0.sentence = sentence })
      print(answer.sentence)
    } catch {
      // Says what happened, where, and mostly what to do.
      print("failed: \(error)")
    }

    await httpClient.shutdown()
  }
}
