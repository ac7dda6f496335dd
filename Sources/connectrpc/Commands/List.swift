import ArgumentParser
import ConnectProtobufC
import ConnectReflection
import Foundation

struct List: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists services, or the methods of one.",
    discussion: """
        connectrpc list https://demo.example
        connectrpc list https://demo.example acme.v1.Users
      """
  )

  @Argument(
    help: ArgumentHelp(
      "The server: https://host:port. May be left out with --schema and --proto.",
      valueName: "url"
    )
  )
  var url: String?

  @Argument(help: "A service, whose methods are listed.")
  var service: String?

  @Flag(help: "Print a JSON array.")
  var json = false

  @OptionGroup(title: "Schema") var schema: SchemaOptions
  @OptionGroup(title: "Server") var server: ServerOptions

  func run() async throws {
    try await Failure.reported {
      let names = try await self.names()
      if self.json {
        Console.output(Console.json(String(decoding: try JSONEncoder().encode(names), as: UTF8.self)))
      } else {
        for name in names { Console.output(Console.line(name)) }
      }
    }
  }

  private func names() async throws -> [String] {
    if let files = try await self.schema.localFiles() {
      // Without a server, the one argument is the service.
      guard let service = self.service ?? self.url.flatMap({ $0.contains(":") ? nil : $0 }) else {
        return files.serviceNames
      }
      return try Self.methods(of: service, try Failure.local { try files.descriptorPool() })
    }
    guard let url = self.url else { throw Failure.usage("say which server, or give --schema or --proto") }
    let address = try ServiceAddress(service: url)
    return try await Session.run(Session(host: address.host, self.server)) { session in
      let reflection = try session.reflection()
      guard let service = self.service else { return try await reflection.serviceNames() }
      let files = try await reflection.files(containing: [service])
      return try Self.methods(of: service, try Failure.reflected { try files.descriptorPool() })
    }
  }

  private static func methods(of name: String, _ pool: DescriptorPool) throws -> [String] {
    guard let service = pool.services.first(where: { $0.name == name }) else {
      throw Failure.usage("there is no service \(name)")
    }
    return service.methods.map { String($0.path.dropFirst()) }
  }
}
