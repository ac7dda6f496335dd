import ArgumentParser
import Connect
import ConnectNIO
import ConnectReflection
import ConnectTesting
import NIOCore
import NIOPosix
import Synchronization

struct Record: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Records the calls that go through a proxy to a cassette.",
    discussion: """
      Listens for HTTP/1.1 and HTTP/2 without TLS, hands each call of Connect, gRPC or gRPC-Web on to the service, and writes the \
      cassette at the end. What comes over HTTP/2 goes on over HTTP/2. Messages are written as JSON if their types are known, \
      else in base64. Calls under way at the end, and calls for which the cassette has no room, are not recorded; these go \
      through all the same. --protocol and --timeout are those of the reflection; --header goes with each call.

        connectrpc record users.json --to https://demo.example --listen 127.0.0.1:8080
        connectrpc replay users.json --listen 127.0.0.1:8080

      For a single call there is connectrpc call --record.
      """
  )

  @Argument(help: "The cassette, which is replaced.")
  var file: String

  @Option(help: ArgumentHelp("The service: https://host:port.", valueName: "url"))
  var to: String

  @OptionGroup var listening: ListenOptions

  @Option(help: ArgumentHelp("How large the cassette may be, in MiB.", valueName: "mib"))
  var maxSize = 256

  @OptionGroup(title: "Redaction") var redaction: RedactionOptions
  @OptionGroup(title: "Schema") var schema: SchemaOptions
  @OptionGroup(title: "Server") var server: ServerOptions

  func validate() throws {
    guard (1...65_536).contains(self.maxSize) else { throw ValidationError("--max-size is from 1 to 65,536") }
    // The cassette would have it, and would then have no answer to the clients that are recorded.
    guard self.server.authority == nil else { throw ValidationError("record takes no --authority") }
  }

  func run() async throws {
    try await Failure.reported {
      let file = CassetteFile(path: self.file)
      try file.checkIsWritable()
      let address = try ServiceAddress(service: self.to)
      try self.server.check(for: address.host)
      try await Session.run(try Session(host: address.host, self.server)) { session in
        let files = try await self.types(session)
        var redaction = self.redaction
        // What the caller adds to each call may be a secret.
        redaction.redactHeader += try self.server.requestHeaders().map(\.name)
        let cassette = try CassetteFile.make(files, redaction, maximumSize: self.maxSize << 20)
        let end = ProxyEnd(count: self.listening.count)
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        let target = ProxyTarget(
          start: try self.recorder(cassette, session, EventLoopExecutor(loop), until: end),
          didEnd: end.callDidEnd
        )
        let proxy = try await ProxyServer.start(at: self.listening.listen, on: loop, target)
        Console.error("listening on \(proxy.url), recording \(Console.line(address.host))")
        await end.wait()
        let result = Result { try file.write(cassette) }
        await proxy.stop()
        try result.get()
      }
    }
  }

  /// The types of messages: from the files of the options, else from the server's reflection.
  private func types(_ session: Session) async throws -> ProtoFileSet? {
    if let files = try await self.schema.localFiles() { return files }
    do {
      let files = try await session.reflection().allFiles()
      // Imports may be missing.
      _ = try files.descriptorPool()
      return files
    } catch let error as ConnectError {
      let reason = Console.line("\(Failure(error).message)")
      Console.error(
        "messages are recorded in base64, since their types are not known; give --schema (\(reason))"
      )
      return nil
    }
  }

  private func recorder(
    _ cassette: Cassette,
    _ session: Session,
    _ executor: EventLoopExecutor,
    until end: ProxyEnd
  ) throws -> ProxyTarget.Start {
    let (origin, prefix) = try Failure.local { try Origin.parse(host: session.host) }
    let headers = try self.server.requestHeaders()
    let recording = try CassetteTransport(cassette, over: session.httpClient, mode: .record)
    let mayBeHTTP2 = self.server.httpVersion != .http1
    let full = FullCassette()
    return { (request, isHTTP2, handler) throws(ConnectError) in
      var request = request
      request.target = prefix + request.target
      request.headers.append(contentsOf: headers)
      let isRecorded = request.isCall && !end.isReached && !full.isReached(by: cassette)
      let transport: any HTTPClientInterface = isRecorded ? recording : session.httpClient
      let endpoint = try transport.endpoint(
        for: origin,
        on: executor,
        requiresHTTP2: isHTTP2 && mayBeHTTP2
      )
      return endpoint.startStream(request, handler: handler)
    }
  }
}

extension HTTPStreamRequest {
  /// Whether it is a call of Connect, gRPC or gRPC-Web. Health checks and logins, for example, are not.
  fileprivate var isCall: Bool {
    guard self.method == .post else {
      return self.target.contains("encoding=") && self.target.contains("message=")
    }
    let type = self.headers["content-type"].first?.lowercased() ?? ""
    return ["application/connect+", "application/grpc", "application/proto", "application/json"].contains {
      type.hasPrefix($0)
    }
  }
}

/// Says once that a cassette is full.
private final class FullCassette: Sendable {
  private let isSaid = Atomic(false)

  func isReached(by cassette: Cassette) -> Bool {
    guard cassette.isFull else { return false }
    if !self.isSaid.exchange(true, ordering: .relaxed) {
      Console.error("the cassette is full: calls go through, and are not recorded any more")
    }
    return true
  }
}
