// Extracted from the doc comments of Sources/ConnectNIO by `make generate`.

import Connect
import ConnectChannels
import ConnectHTTP3
import ConnectInterceptors
import ConnectLifecycle
import ConnectNIO
import ConnectProtobufC
import ConnectReflection
import ConnectSimulation
import ConnectTesting
import Logging
import NIOCore
import ServiceLifecycle
import XCTest

extension DocComments {
  private func ServerVerifier_1() async throws {
    var configuration = NIOHTTPClient.Configuration.defaults
    configuration.tls.serverVerifier = ServerVerifier { server in
      guard server.names.uris == ["spiffe://prod.example/billing"] else {
        throw ConnectError(code: .unauthenticated, message: "this is not the billing service")
      }
    }
    _ = configuration
  }

  private func HTTP3Support_1() async throws {
    let client = NIOHTTPClient(configuration: .init(http3: .discovered))
    _ = client
  }

  private func NIOHTTPClient_1() async throws {
    let client = NIOHTTPClient()
    // … calls …
    await client.shutdown()
    _ = client
  }

  private func ProxySelection_1() async throws {
    configuration.proxy = .proxy(try Proxy("http://proxy.example.com:3128"))
  }

  private func DNSResolver_1() async throws {
    var configuration = NIOHTTPClient.Configuration.defaults
    configuration.channel.resolver = DNSResolver()
    configuration.channel.resolver = DNSResolver.service("_grpc._tcp.example.com")
    _ = configuration
  }

  private func Target_Resolver_1() async throws {
    configuration.channel.resolver = try Target("srv:_grpc._tcp.example.com").resolver
  }
}
