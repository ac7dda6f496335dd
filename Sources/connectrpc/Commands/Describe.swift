import ArgumentParser
import Connect
import ConnectReflection

struct Describe: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows the proto source of a symbol: a service, method, message, enum, field, package or file.",
    discussion: """
      Without a symbol, it shows all files that the server's services are in, and those that they import. Names may be short, as \
      they are in proto source, if only one symbol has that name.

        connectrpc describe https://demo.example
        connectrpc describe https://demo.example acme.v1.Users
        connectrpc describe --schema acme.binpb User
      """
  )

  @Argument(
    help: ArgumentHelp(
      "The server, if there is no --schema and no --proto; then the symbol.",
      valueName: "url symbol"
    )
  )
  var arguments: [String] = []

  @Flag(help: "Print the descriptor as JSON.")
  var json = false

  @OptionGroup(title: "Schema") var schema: SchemaOptions
  @OptionGroup(title: "Server") var server: ServerOptions

  func validate() throws {
    if self.schema.isLocal {
      guard self.arguments.count <= 1 else { throw ValidationError("say which symbol, and nothing else") }
    } else {
      guard (1...2).contains(self.arguments.count) else {
        throw ValidationError("say URL and symbol, or the URL alone")
      }
    }
  }

  /// Nil for everything.
  private var symbol: String? {
    let symbol = self.arguments.dropFirst(self.schema.isLocal ? 0 : 1).first?.withoutBlanks
    return symbol.map { String($0.drop { $0 == "/" }) }
  }

  func run() async throws {
    try await Failure.reported {
      if let local = try await self.schema.localFiles() {
        Console.output(try Failure.local { try self.text(local) })
      } else {
        let address = try ServiceAddress(service: self.arguments[0])
        let files = try await Session.run(Session(host: address.host, self.server)) {
          try await self.files(try $0.reflection())
        }
        Console.output(try self.text(files))
      }
    }
  }

  private func files(_ reflection: ReflectionClient) async throws -> ProtoFileSet {
    guard let symbol = self.symbol else {
      let files = try await reflection.allFiles()
      let lost = Set(try await reflection.serviceNames()).subtracting(files.serviceNames).sorted()
      if !lost.isEmpty {
        Console.note(
          "the server lists \(lost.joined(separator: ", ")), and its reflection has no file of that"
        )
      }
      return files
    }
    do {
      return try await reflection.files(containing: [symbol])
    } catch let error as ConnectError where error.code == .notFound {
      // Servers know full names of declarations, but neither short ones, nor packages and files.
      guard let all = try? await reflection.allFiles(),
        !all.fullNames(of: symbol).isEmpty || (try? all.source(of: symbol)) != nil
      else { throw error }
      return all
    }
  }

  private func text(_ files: ProtoFileSet) throws -> String {
    let text: String
    if let symbol = try self.symbol.map({ try Self.fullName(of: $0, in: files) }) {
      text = try self.json ? files.json(of: symbol) : files.source(of: symbol)
    } else {
      text = try self.json ? files.jsonOfAll() : files.sourceOfAll()
    }
    return text.last == "\n" ? String(text.dropLast()) : text
  }

  private static func fullName(of symbol: String, in files: ProtoFileSet) throws -> String {
    let names = files.fullNames(of: symbol)
    guard names.count <= 1 else {
      throw Failure.usage("\(symbol) may be \(names.joined(separator: " or ")): say which")
    }
    return names.first ?? symbol
  }
}
