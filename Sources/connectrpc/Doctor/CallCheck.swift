import Connect
import ConnectHTTP3
import ConnectNIO
import ConnectReflection
import NIOCore
import Synchronization

/// Looks at HTTP and what is above it, by calls of the health service, which change nothing.
struct CallCheck {
  let host: String
  let server: ServerOptions

  private static let method = MethodSpec<ByteBuffer, ByteBuffer>(
    info: MethodInfo(
      path: "/grpc.health.v1.Health/Check",
      streamType: .unary,
      idempotencyLevel: .noSideEffects
    ),
    input: .bytes,
    output: .bytes
  )

  /// Of what is said when nothing is known.
  static let unknownSubject = "unknown"

  private static let protocols: [(name: String, choice: ServerOptions.WireProtocol, contentTypes: [String])] =
    [
      ("connect", .connect, ["application/json", "application/proto"]),
      ("grpc", .grpc, ["application/grpc"]),
      ("grpc-web", .grpcWeb, ["application/grpc-web"]),
    ]

  private var isSecure: Bool { self.host.hasPrefix("https:") }

  // MARK: One call

  /// What became of one call.
  private struct Answer {
    var error: ConnectError?
    var contentType: String?
    var encoding: String?
    var status: Int?
    var version: HTTPConnectionInfo.Version?

    var reason: String {
      guard let error = self.error else { return "ok" }
      return error.message.map { "\(error.code.name): \($0)" } ?? error.code.name
    }
  }

  private func ask(
    _ version: ServerOptions.HTTPVersion?,
    _ choice: ServerOptions.WireProtocol,
    compresses: Bool = false
  ) async -> Answer {
    do {
      var server = self.server
      server.httpVersion = version
      server.wireProtocol = choice
      server.timeout = server.timeout ?? TimeSpan(argument: "5s")
      let session = try Session(host: self.host, server)
      var config = server.clientConfig(for: self.host)
      if compresses { config.compression.responses = [GzipCompressionPool()] }
      let ear = Ear()
      config.interceptors = [{ _ in ear }]
      let options = CallOptions(headers: try server.requestHeaders())
      let client = ProtocolClient(httpClient: session.httpClient, config: config)
      let response = await client.unary(Self.method, ByteBuffer(), options: options)
      await session.httpClient.shutdown(within: .zero)
      var answer = ear.answer
      answer.error = response.error
      return answer
    } catch {
      return Answer(
        error: (error as? ConnectError) ?? ConnectError(code: .unknown, message: Failure(error).message)
      )
    }
  }

  /// Hears what unary calls bring besides messages.
  private final class Ear: Interceptor, Sendable {
    private let heard = Mutex(Answer())

    var answer: Answer { self.heard.withLock { $0 } }

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(
        updateRequest: { _ in },
        updateResponse: { response in
          self.heard.withLock {
            $0.contentType = response.httpHeaders.first("content-type")
            $0.status = response.httpStatus
          }
          return .proceed
        },
        responseMetricsFunction: { metrics, proceed in
          self.heard.withLock { $0.version = metrics.connection?.version }
          proceed(metrics)
        }
      )
    }
  }

  // MARK: Findings

  func run() async -> [Finding] {
    var findings = await self.versions()
    let spoken = await self.protocols(&findings)
    guard let choice = spoken.first else {
      if findings.contains(where: { $0.text.hasPrefix("HTTP status 404") }) {
        findings.append(
          Finding(
            subject: Self.unknownSubject,
            verdict: .absent,
            text: "HTTP works; there is no health service to try protocols with",
            advice: "try call with a method of the service and --schema or --proto"
          )
        )
        return findings
      }
      findings.append(
        Finding(
          subject: "protocols",
          verdict: .broken,
          text: "the server speaks neither Connect, gRPC nor gRPC-Web here",
          advice: "check port and path, and whether a proxy in front passes gRPC on"
        )
      )
      return findings
    }
    findings += await self.services(choice)
    return findings
  }

  private func versions() async -> [Finding] {
    var findings: [Finding] = []
    var versions: [(String, ServerOptions.HTTPVersion)] = [("HTTP/1.1", .http1), ("HTTP/2", .http2)]
    if self.isSecure { versions.append(("HTTP/3", .http3)) }
    for (name, version) in versions {
      // Whatever the answer is: a connection of this version brought it.
      let answer = await self.ask(version, .connect)
      // Over HTTP/1.1 a connection alone says nothing.
      if answer.status != nil || (version != .http1 && answer.version != nil) {
        findings.append(
          Finding(
            subject: name,
            verdict: .works,
            text: answer.status.map { "HTTP status \($0)" } ?? "answers"
          )
        )
      } else {
        findings.append(Finding(subject: name, verdict: .absent, text: answer.reason))
      }
    }
    return findings
  }

  private func protocols(_ findings: inout [Finding]) async -> [ServerOptions.WireProtocol] {
    var spoken: [ServerOptions.WireProtocol] = []
    for (name, choice, types) in Self.protocols {
      let answer = await self.ask(self.server.httpVersion, choice)
      let type = answer.contentType ?? ""
      // gRPC's type begins that of gRPC-Web.
      let isSpoken =
        types.contains { type.hasPrefix($0) } && (choice != .grpc || !type.hasPrefix("application/grpc-web"))
      if isSpoken || answer.error == nil {
        spoken.append(choice)
        findings.append(
          Finding(subject: name, verdict: .works, text: "answers (\(answer.error?.code.name ?? "ok"))")
        )
      } else {
        let what =
          answer.status.map { "HTTP status \($0)" + (type.isEmpty ? "" : ", \(type)") } ?? answer.reason
        findings.append(Finding(subject: name, verdict: .absent, text: what))
      }
    }
    return spoken
  }

  private func services(_ choice: ServerOptions.WireProtocol) async -> [Finding] {
    var findings: [Finding] = []
    let health = await self.ask(self.server.httpVersion, choice)
    switch health.error?.code {
    case nil: findings.append(Finding(subject: "health", verdict: .works, text: "the health service answers"))
    case .unimplemented?:
      findings.append(Finding(subject: "health", verdict: .absent, text: "there is no grpc.health.v1.Health"))
    case .unauthenticated?, .permissionDenied?:
      findings.append(
        Finding(subject: "health", verdict: .absent, text: health.reason, advice: "give credentials by -H")
      )
    default: findings.append(Finding(subject: "health", verdict: .broken, text: health.reason))
    }
    var server = self.server
    server.wireProtocol = choice
    server.timeout = server.timeout ?? TimeSpan(argument: "5s")
    do {
      let names = try await Session.run(Session(host: self.host, server)) {
        try await $0.reflection().serviceNames()
      }
      findings.append(Finding(subject: "reflection", verdict: .works, text: names.joined(separator: ", ")))
    } catch {
      findings.append(
        Finding(
          subject: "reflection",
          verdict: .absent,
          text: Failure(error).message,
          advice: "without it, give list, describe and call a --schema or --proto"
        )
      )
    }
    return findings
  }
}
