import ArgumentParser
import Connect
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

  func validate() throws {
    if self.schema.isLocal, self.service != nil, self.url?.contains(":") == false {
      throw ValidationError("say which service, and nothing else")
    }
  }

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
      let files: ProtoFileSet
      do {
        files = try await reflection.files(containing: [service])
      } catch let error as ConnectError where error.code == .notFound {
        // Servers know full names only.
        let names = (try? await reflection.serviceNames()) ?? []
        guard let name = Self.fullName(of: service, among: names), name != service else { throw error }
        files = try await reflection.files(containing: [name])
      }
      return try Self.methods(of: service, try Failure.reflected { try files.descriptorPool() })
    }
  }

  private static func methods(of name: String, _ pool: DescriptorPool) throws -> [String] {
    let names = pool.services.map(\.name)
    let fullName = self.fullName(of: name, among: names)
    guard let service = pool.services.first(where: { $0.name == fullName }) else {
      let known = names.isEmpty ? "" : "; there are \(names.sorted().joined(separator: ", "))"
      throw Failure.usage("there is no service \(name)\(known)")
    }
    return service.methods.map { String($0.path.dropFirst()) }
  }

  /// The service that a name, which may lack the package, stands for; nil if there is none, or more than one.
  private static func fullName(of name: String, among names: [String]) -> String? {
    if names.contains(name) { return name }
    let found = names.filter { $0.hasSuffix(".\(name)") }
    return found.count == 1 ? found[0] : nil
  }
}
