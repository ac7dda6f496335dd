import Connect
import ConnectNIO
import Eliza

/// Sends each line of standard input to Eliza, and prints her answers as they come: a bidirectional stream.
///
///     swift build && .build/debug/Conversation https://demo.connectrpc.com
@main
struct Conversation {
  static func main() async {
    let host = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : "https://demo.connectrpc.com"
    // Over HTTP/1.1 a server may answer only when it has the whole request.
    let httpClient = NIOHTTPClient(configuration: .init(version: .http2Only))
    let client = ProtocolClient(httpClient: httpClient, config: ProtocolClientConfig(host: host))
    let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)

    let conversation = eliza.converse()
    let sending = Task.detached {
      while let line = readLine() {
        // Waits while the server takes no more, and throws when the stream is over.
        try await conversation.send(.with { $0.sentence = line })
      }
      conversation.finish()
    }

    do {
      for try await answer in conversation.messages {
        print("Eliza: \(answer.sentence)")
      }
    } catch {
      print("failed: \(error)")
    }
    sending.cancel()
    await httpClient.shutdown()
  }
}
