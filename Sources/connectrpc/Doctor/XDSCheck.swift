import Connect
import ConnectChannels
import ConnectNIO
import ConnectXDS
import Foundation
import NIOPosix

/// Checks what control planes say of a target: the bootstrap, each control plane, and the resources.
struct XDSCheck {
  let target: String
  let environment: [String: String]
  /// How long a control plane has for all resources: longer than resources take to count as missing.
  var patience = Duration.seconds(20)

  func run() async -> [Finding] {
    let bootstrap: XDSBootstrap
    do throws(XDSBootstrapError) {
      bootstrap = try XDSBootstrap.ofEnvironment(self.environment)
    } catch {
      return error.problems.map { problem in
        let place = problem.path.isEmpty ? error.source : "\(error.source): \(problem.path)"
        return Finding("bootstrap", .broken, "\(place): \(problem.problem)")
      }
    }
    var findings = [
      Finding("bootstrap", .works, "node \"\(bootstrap.node.id)\", \(bootstrap.servers.count) control planes")
    ]
    do throws(ConnectError) {
      _ = try XDSClient(bootstrap: bootstrap).resolver(for: self.target)
    } catch {
      return findings + [Finding("target", .broken, error.message ?? "\(error)")]
    }
    // Each by itself, as a client asks the later ones only if the earlier ones cannot be reached.
    var isAnswered = false
    for server in bootstrap.servers {
      var single = bootstrap
      single.servers = [server]
      let found = await self.look(at: server, single)
      isAnswered = isAnswered || found.first?.verdict == .works
      findings += found
    }
    // Calls would only say the same again.
    if !isAnswered { findings[findings.endIndex - 1].isFatal = true }
    return findings
  }

  private func look(at server: XDSBootstrap.Server, _ bootstrap: XDSBootstrap) async -> [Finding] {
    let client = XDSClient(bootstrap: bootstrap)
    defer { client.shutDown() }
    let resolver: any NameResolver
    do throws(ConnectError) {
      resolver = try client.resolver(for: self.target)
    } catch {
      return [Finding("target", .broken, error.message ?? "\(error)")]
    }
    let (answer, resources) = await self.firstAnswer(of: resolver, through: client)
    let hasAnswered = resources.contains { $0.status != .requested }
    var findings = [
      Finding(
        "xds server",
        hasAnswered ? .works : .broken,
        "\(server.uri): \(hasAnswered ? "answers" : Self.reason(answer))",
        advice: hasAnswered ? nil : "check its server_uri in the bootstrap, and whether it is up",
        isFatal: false
      )
    ]
    guard hasAnswered else { return findings }
    findings += resources.map(\.finding)
    switch answer {
    case .success(let update):
      let clusters = update.routing?.clusters ?? [:]
      let servers = clusters.values.reduce(0) { $0 + $1.endpoints.count }
      let routes = update.routing?.routes.count ?? 0
      let text = "\(routes) routes, \(clusters.count) clusters, \(servers) servers"
      findings.append(Finding("routes", servers > 0 ? .works : .broken, text))
    case .failure, nil:
      findings.append(Finding("routes", .broken, Self.reason(answer)))
    }
    return findings
  }

  private static func reason(_ answer: Result<ResolverUpdate, ConnectError>?) -> String {
    switch answer {
    case .failure(let error): error.message ?? "\(error)"
    case .success: "no resources"
    case nil: "no complete answer in time"
    }
  }

  /// The first answer, nil if there is none in time; and what the client knows then.
  private func firstAnswer(
    of resolver: any NameResolver,
    through client: XDSClient
  ) async -> (Result<ResolverUpdate, ConnectError>?, [XDSSnapshot.Resource]) {
    let executor = EventLoopExecutor(MultiThreadedEventLoopGroup.singleton.next())
    let origin = Origin(scheme: .http, host: "xds", port: 80)
    let (answers, continuation) = AsyncStream.makeStream(of: Result<ResolverUpdate, ConnectError>?.self)
    let watch = resolver.watch(origin, on: executor) { continuation.yield($0) }
    executor.execute { _ = executor.schedule(after: self.patience) { continuation.yield(nil) } }
    defer { executor.execute { watch.cancel() } }
    var first: Result<ResolverUpdate, ConnectError>?
    for await answer in answers {
      first = answer
      break
    }
    // While the watch lasts: without one, the client forgets the resources.
    return (first, await client.snapshot().resources)
  }
}

extension XDSSnapshot.Resource {
  fileprivate var finding: Finding {
    let kind = self.type.split(separator: ".").last.map(String.init) ?? self.type
    let version = self.version.map { ", version \($0)" } ?? ""
    switch self.status {
    case .requested: return Finding("resource", .absent, "\(kind) \(self.name): no answer yet")
    case .acknowledged: return Finding("resource", .works, "\(kind) \(self.name)\(version)")
    case .doesNotExist:
      return Finding(
        "resource",
        .broken,
        "\(kind) \(self.name): does not exist",
        advice: "add it on the control plane, or name another",
        isFatal: false
      )
    case .refused:
      return Finding(
        "resource",
        .broken,
        "\(kind) \(self.name): \(self.refusal?.details ?? "cannot be used")",
        advice: self.version.map { "version \($0) stays in use" },
        isFatal: false
      )
    }
  }
}
