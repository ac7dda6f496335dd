import ArgumentParser
import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectProtobufC
import ConnectReflection
import ConnectTesting
import NIOCore

struct Call: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Calls a method.",
    discussion: """
      Types are known from the server's reflection, unless --schema or --proto is given. Each response is printed as JSON on \
      standard output as soon as it has come; all else goes to standard error. A stream takes several requests, in one or in \
      several -d. Without -d, its requests come from standard input.

        connectrpc call https://demo.example/acme.v1.Users/Get -d '{"id": 7}'
        connectrpc call http://localhost:8080/acme.v1.Users/Import -d @users.ndjson
        connectrpc call http://localhost:8080/acme.v1.Users/Get --record users.json
      """
  )

  @OptionGroup var request: RequestOptions

  @Flag(
    name: .customLong("get"),
    help: "Send a unary call without side effects as HTTP GET, over the Connect protocol."
  )
  var usesGET = false

  @Flag(
    name: .customLong("pretty"),
    inversion: .prefixedNo,
    help: "Print JSON over several lines; by default on terminals."
  )
  var isPretty = Console.isOutputTerminal

  @Flag(
    name: .customLong("proto-names"),
    help: "Print fields by their names in the proto file, in place of lowerCamelCase."
  )
  var usesProtoNames = false

  @Flag(
    name: .customLong("emit-defaults"),
    help: "Print fields without presence also if they are zero or empty."
  )
  var emitsDefaults = false

  @Flag(
    name: .shortAndLong,
    help: "Show headers, trailers and the connection on standard error, and the HTTP status of unary calls."
  )
  var verbose = false

  @Flag(name: .customLong("explain"), help: "Show on standard error where the call's time went, as a chart.")
  var explains = false

  @OptionGroup(title: "Cassette") var cassette: CassetteOptions
  @OptionGroup(title: "Schema") var schema: SchemaOptions
  @OptionGroup(title: "Server") var server: ServerOptions

  func validate() throws {
    if self.usesGET, ![.auto, .connect].contains(self.server.wireProtocol) {
      throw ValidationError("--get is of the Connect protocol: leave --protocol out, or say connect")
    }
  }

  func run() async throws {
    try await Failure.reported {
      let address = try ServiceAddress(method: self.request.url)
      let recorded = try await self.cassette.open(self.schema)
      let method = try await CalledMethod(at: address, self.schema, self.server, known: recorded?.files)
      if self.usesGET { try Self.checkIsGET(method.info) }
      let session = try Session(
        host: address.host,
        self.server,
        needsDuplex: method.needsDuplex(self.server)
      )
      try await Session.run(session) { session in
        let transport = try self.cassette.transport(
          over: session.httpClient,
          replaying: recorded?.cassette,
          method.files
        )
        do {
          try await self.call(method, try method.types(session), session, over: transport)
        } catch {
          // The call's own error is the one that counts.
          do {
            try self.cassette.finish(transport)
          } catch let other {
            Console.problem(Failure(other).message)
          }
          throw error
        }
        try self.cassette.finish(transport)
      }
    }
  }

  /// The library sends what servers do not accept as GET as POST.
  private static func checkIsGET(_ method: MethodInfo) throws {
    guard method.streamType == .unary else {
      throw Failure.usage("--get is for unary calls, and \(method.name) is a stream")
    }
    guard method.idempotencyLevel == .noSideEffects else {
      throw Failure.usage(
        "\(method.name) is not declared to be without side effects (idempotency_level = NO_SIDE_EFFECTS), as --get needs"
      )
    }
  }

  // MARK: The call

  /// - Parameter transport: Makes the call in place of the session's client.
  private func call(
    _ method: CalledMethod,
    _ types: MessageTypes,
    _ session: Session,
    over transport: CassetteTransport?
  ) async throws {
    var httpClient: any HTTPClientInterface = transport ?? session.httpClient
    if self.verbose { httpClient = TappedClient(base: httpClient) }
    let client = ProtocolClient(httpClient: httpClient, config: self.config(session))
    let explainer = self.explains ? CallExplainer() : nil
    var options = try self.server.callOptions()
    let end = CallEnd()
    if let explainer { options = end.watching(options.explained(by: explainer)) }
    let cancellation = CallCancellation()
    options.context.cancellation = cancellation
    var interrupt: Interrupt?
    defer { interrupt?.stop() }
    let printer = MessagePrinter(
      isIndented: self.isPretty,
      usesProtoNames: self.usesProtoNames,
      emitsDefaults: self.emitsDefaults,
      types: types
    )
    let error = try await self.exchange(method.descriptor, client, options, printer) {
      // An interrupted call is recorded, too.
      if self.cassette.recordPath != nil { interrupt = Interrupt { cancellation.cancel() } }
    }
    if let explainer {
      // The cost of an abandoned attempt is known only after the call's response.
      try await end.wait()
      self.show(explainer.explanation)
    }
    if self.request.data.isEmpty, !method.info.streamsRequests { ByteSource.noteUnreadInput() }
    guard let error else { return }
    throw Failure(
      error,
      details: await printer.detailLines(of: error),
      isReplayed: self.cassette.replayPath != nil
    )
  }

  private func show(_ explanation: CallExplanation) {
    for row in CallTimeline(explanation: explanation, width: Console.errorWidth).rows {
      let text = Console.line(row.text)
      switch row.kind {
      case .heading: Console.error(Console.name(text))
      case .phase: Console.error(text)
      case .failure: Console.error(Console.bad(text))
      case .note: Console.error(Console.dim(text))
      }
    }
  }

  private func config(_ session: Session) -> ProtocolClientConfig {
    var server = self.server
    // The one protocol with GET.
    if self.usesGET { server.wireProtocol = .connect }
    var config = self.request.clientConfig(for: session.host, server)
    if self.usesGET { config.unaryGET = .alwaysEnabled }
    if self.verbose { config.interceptors = [{ _ in WireTap() }] }
    return config
  }

  /// - Parameter willCall: Is called when there is a call from then on.
  /// - Returns: The error that the call ended with.
  private func exchange(
    _ method: MethodDescriptor,
    _ client: ProtocolClient,
    _ options: CallOptions,
    _ printer: MessagePrinter,
    willCall: () -> Void
  ) async throws -> ConnectError? {
    let types = printer.types
    let spec = method.openSpec()
    let usesInput = self.request.data.isEmpty && method.info.streamsRequests
    var messages = try RequestMessages(usesInput ? ["@-"] : self.request.data)
    switch method.info.streamType {
    case .unary:
      let request = try await messages.only(method.input, types)
      willCall()
      let response = await client.unary(spec, request, options: options)
      if let message = response.message { try await printer.print(message) }
      return response.error
    case .serverStream:
      let request = try await messages.only(method.input, types)
      willCall()
      return try await self.show(client.serverStream(spec, request, options: options).results, printer)
    case .clientStream, .bidirectionalStream:
      let end = CallEnd()
      // So a response, or the end, is seen at once, while requests are still being sent.
      let duplexSpec = method.openSpec(as: .bidirectionalStream)
      willCall()
      let stream = client.bidirectionalStream(duplexSpec, options: end.watching(options))
      let results = Task { try await self.show(stream.results, printer) }
      do {
        try await self.send(messages, method.input, types, until: end) {
          (message) async throws(ConnectError) in
          try await stream.send(message)
        }
      } catch {
        stream.cancel()
        throw error
      }
      stream.finish()
      let error = try await results.value
      if error == nil, method.info.streamType == .clientStream, end.responses == 0 {
        throw Failure(message: "the server has ended the call without a response", exitCode: 1)
      }
      return error
    }
  }

  /// Sends messages as they come, until there are no more, or the call has ended: standard input may stay open without data.
  /// A failed send is not reported, since the call's end says why.
  private func send(
    _ messages: RequestMessages,
    _ descriptor: MessageDescriptor,
    _ types: MessageTypes,
    until end: CallEnd,
    _ send: @escaping @Sendable (DynamicMessage) async throws(ConnectError) -> Void
  ) async throws {
    Task {
      var messages = messages
      do {
        while let message = try await messages.next(descriptor, types) {
          do { try await send(message) } catch { break }
        }
        end.finish(nil)
      } catch {
        end.finish(error)
      }
    }
    try await end.wait()
  }

  private func show(
    _ results: StreamResults<ReceivedMessage>,
    _ printer: MessagePrinter
  ) async throws -> ConnectError? {
    for await result in results {
      switch result {
      case .headers: break
      case .message(let message): try await printer.print(message)
      case .complete(_, let error, _): return error
      }
    }
    return nil
  }
}

extension MethodInfo {
  fileprivate var streamsRequests: Bool {
    self.streamType == .clientStream || self.streamType == .bidirectionalStream
  }
}
