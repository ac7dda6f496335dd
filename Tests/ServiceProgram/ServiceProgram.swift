import Connect
import ConnectLifecycle
import ConnectNIO
import Foundation
import Logging
import LoopbackServer
import ServiceLifecycle
import UnixSignals

/// Makes one unary call to a path, through the proxy of the environment, and prints what came of it, and `ended` at last.
/// Ends after the call; with `--until-signal` after SIGTERM, and says `stopping` to standard error when that has come. With
/// `--late`, see ``LateCalls``; with `--bootstrap`, see ``Bootstrap``.
///
///     ServiceProgram HOST PATH [--until-signal | --late | --bootstrap]
@main
struct ServiceProgram {
  static func main() async throws {
    let arguments = CommandLine.arguments
    if arguments.count > 3, arguments[3] == "--late" {
      try await LateCalls.run(host: arguments[1], path: arguments[2])
      return
    }
    if arguments.count > 3, arguments[3] == "--bootstrap" {
      try await Bootstrap.run(host: arguments[1], path: arguments[2])
      return
    }
    let httpClient = NIOHTTPClient(configuration: .init(proxy: .environment))
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(host: arguments[1], timeout: .seconds(60))
    )
    let caller = Caller(client: client, path: arguments[2], runsUntilSignal: arguments.count > 3)
    let configuration = ServiceGroupConfiguration(
      services: [
        .init(service: HTTPClientService(httpClient)),
        .init(service: caller, successTerminationBehavior: .gracefullyShutdownGroup),
      ],
      gracefulShutdownSignals: [.sigterm],
      logger: Logger(label: "service", factory: { _ in SwiftLogNoOpLogHandler() })
    )
    try await ServiceGroup(configuration: configuration).run()
    print("ended")
  }
}

private struct Caller: Service {
  let client: ProtocolClient
  let path: String
  /// Whether this service ends when it is told to, with its call under way.
  let runsUntilSignal: Bool

  func run() async throws {
    let method = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>(
      path: self.path,
      streamType: .unary
    )
    if self.runsUntilSignal {
      self.client.unary(method, Connect_Test_V1_EchoRequest()) { Self.show($0.error) }
      try await gracefulShutdown()
      FileHandle.standardError.write(Data("stopping\n".utf8))
    } else {
      Self.show(await self.client.unary(method, Connect_Test_V1_EchoRequest()).error)
    }
  }

  private static func show(_ error: ConnectError?) {
    print(error.map { "\($0)" } ?? "ok")
  }
}
