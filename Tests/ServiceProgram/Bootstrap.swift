import Connect
import ConnectChannels
import ConnectNIO
import LoopbackServer

/// Gives an interceptor and an observer to all clients of this process, and prints what they see and what is refused.
enum Bootstrap {
  private struct Shown: Interceptor {
    func unaryFunction() -> UnaryFunction {
      UnaryFunction(
        requestFunction: { request, proceed in
          print("request to \(request.url.path)")
          proceed(.success(request))
        },
        responseFunction: { response, proceed in
          print("response \(response.code)")
          proceed(response)
        }
      )
    }
  }

  private struct Observer: ChannelObserver {
    func channel(to origin: Origin, did event: ChannelEvent) {
      if case .connectionOpened = event { print("connected") }
    }
  }

  static func run(host: String, path: String) async throws {
    Self.bootstrap()
    Self.bootstrap()
    let httpClient = NIOHTTPClient()
    Self.bootstrap()
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(host: host, timeout: .seconds(60))
    )
    let method = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>(
      path: path,
      streamType: .unary
    )
    _ = await client.unary(method, Connect_Test_V1_EchoRequest())
    await httpClient.shutdown()
    print("ended")
  }

  private static func bootstrap() {
    do throws(ConnectError) {
      try ClientSystem.bootstrap(interceptors: [{ _ in Shown() }], channelObserver: Observer())
      print("set")
    } catch {
      print("\(error.code.name)")
    }
  }
}
