import Connect
import ConnectChannels
import ConnectNIO
import LoopbackServer
import NIOCore
import NIOPosix

/// Uses a client after its shutdown, when the event loops of the program's own group have ended, too. Prints what comes of it.
enum LateCalls {
  private typealias Request = Connect_Test_V1_EchoRequest
  private typealias Response = Connect_Test_V1_EchoResponse

  static func run(host: String, path: String) async throws {
    for loops in [1, 2] {
      let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
      var configuration = NIOHTTPClient.Configuration.defaults
      configuration.eventLoops = loops
      let httpClient = NIOHTTPClient(configuration: configuration, eventLoopGroup: group)
      let holding = Holding()
      let config = ProtocolClientConfig(host: host, timeout: .seconds(5))
      let client = ProtocolClient(httpClient: httpClient, config: config)
      var heldConfig = config
      heldConfig.interceptors = [{ _ in Holder(holding) }]
      let heldClient = ProtocolClient(httpClient: httpClient, config: heldConfig)
      let unary = MethodSpec<Request, Response>(path: path, streamType: .unary)
      Self.show("before", await client.unary(unary, Request()).error)

      // An interceptor holds this call until everything else is over.
      async let held = heldClient.unary(unary, Request(), options: CallOptions(timeout: .seconds(60)))
      // The deadline ends this one, though the group is gone by then.
      async let expired = heldClient.unary(unary, Request(), options: CallOptions(timeout: .seconds(2)))
      await holding.wait(for: 2)
      await httpClient.shutdown()
      try await group.shutdownGracefully()

      Self.show("unary", await client.unary(unary, Request()).error)
      let requested = MethodSpec<Request, Response>(path: path, streamType: .serverStream)
      Self.show("server stream", await Self.error(of: client.serverStream(requested, Request()).results))
      let both = MethodSpec<Request, Response>(path: path, streamType: .bidirectionalStream)
      let stream = client.bidirectionalStream(both)
      try? await stream.send(Request())
      Self.show("bidirectional", await Self.error(of: stream.results))
      let preferring = await withTaskExecutorPreference(client.taskExecutor) {
        await client.unary(unary, Request()).error
      }
      Self.show("on the client's executor", preferring)
      let other = ProtocolClient(httpClient: httpClient, config: config)
      Self.show("another client", await other.unary(unary, Request()).error)
      var elsewhere = config
      elsewhere.host = "http://127.0.0.1:1"
      let unknown = ProtocolClient(httpClient: httpClient, config: elsewhere)
      Self.show("another host", await unknown.unary(unary, Request()).error)
      await httpClient.shutdown()
      print("snapshots:", await httpClient.snapshots().map { "\($0.state)" }.joined(separator: " "))
      Self.show("expired", await expired.error)
      await holding.release()
      Self.show("held", await held.error)
    }
    print("ended")
  }

  private static func show(_ what: String, _ error: ConnectError?) {
    print("\(what): \(error.map { "\($0.code)" } ?? "ok")")
  }

  private static func error(of results: some AsyncSequence<StreamResult<Response>, Never>) async
    -> ConnectError?
  {
    for await result in results {
      if case .complete(_, let error, _) = result { return error }
    }
    return nil
  }
}

private actor Holding {
  private var count = 0
  private var isReleased = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func hold() async {
    self.count += 1
    while !self.isReleased { try? await Task.sleep(for: .milliseconds(10)) }
  }

  func wait(for count: Int) async {
    while self.count < count { try? await Task.sleep(for: .milliseconds(10)) }
  }

  func release() { self.isReleased = true }
}

private final class Holder: Interceptor {
  private let holding: Holding

  init(_ holding: Holding) { self.holding = holding }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { [holding] request, proceed in
      Task {
        await holding.hold()
        proceed(.success(request))
      }
    })
  }
}
