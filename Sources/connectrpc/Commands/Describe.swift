import ArgumentParser
import ConnectReflection

struct Describe: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows the proto source of a service, method, message or enum.",
    discussion: """
        connectrpc describe https://demo.example acme.v1.Users
        connectrpc describe --schema acme.binpb acme.v1.User
      """
  )

  @Argument(
    help: ArgumentHelp(
      "The server, if there is no --schema and no --proto; then the symbol.",
      valueName: "url symbol"
    )
  )
  var arguments: [String]

  @Flag(help: "Print the descriptor as JSON.")
  var json = false

  @OptionGroup(title: "Schema") var schema: SchemaOptions
  @OptionGroup(title: "Server") var server: ServerOptions

  func validate() throws {
    let count = self.schema.isLocal ? 1 : 2
    guard self.arguments.count == count else {
      throw ValidationError(count == 1 ? "say which symbol, and nothing else" : "say URL and symbol")
    }
  }

  func run() async throws {
    try await Failure.reported {
      // A method may be written as in URLs.
      guard let last = self.arguments.last else { return }
      let symbol = last.drop { $0 == "/" }.replacing("/", with: ".")
      if let local = try await self.schema.localFiles() {
        Console.output(try Failure.local { try self.text(of: String(symbol), in: local) })
      } else {
        let address = try ServiceAddress(service: self.arguments[0])
        let files = try await Session.run(Session(host: address.host, self.server)) {
          try await $0.reflection().files(containing: [String(symbol)])
        }
        Console.output(try self.text(of: String(symbol), in: files))
      }
    }
  }

  private func text(of symbol: String, in files: ProtoFileSet) throws -> String {
    let text = try self.json ? files.json(of: symbol) : files.source(of: symbol)
    return text.last == "\n" ? String(text.dropLast()) : text
  }
}
