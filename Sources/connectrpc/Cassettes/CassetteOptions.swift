import ArgumentParser
import ConnectNIO
import ConnectReflection
import ConnectTesting

/// The cassette that a call is recorded to, or answered from.
struct CassetteOptions: ParsableArguments {
  @Option(
    name: .customLong("record"),
    help: ArgumentHelp("Make the call, and write it to this cassette.", valueName: "file")
  )
  var recordPath: String?

  @Option(
    name: .customLong("replay"),
    help: ArgumentHelp("Answer the call from this cassette, in place of the server.", valueName: "file")
  )
  var replayPath: String?

  @OptionGroup var redaction: RedactionOptions

  func validate() throws {
    if self.recordPath != nil, self.replayPath != nil {
      throw ValidationError("give either --record or --replay")
    }
    if self.recordPath == nil, self.replayPath == nil, !self.redaction.isEmpty {
      throw ValidationError("--redact-header and --redact-field are for --record and --replay")
    }
  }

  /// Before the call: checks that the cassette can be written, or reads it.
  func open(_ schema: SchemaOptions) async throws -> (cassette: Cassette, files: ProtoFileSet?)? {
    if let path = self.recordPath { try CassetteFile(path: path).checkIsWritable() }
    guard let path = self.replayPath else { return nil }
    return try await CassetteFile(path: path).read(schema, self.redaction)
  }

  /// The transport that makes the call; nil if it is the client itself.
  ///
  /// - Parameters:
  ///   - recorded: The cassette to replay; nil for none.
  ///   - files: The types of the call's messages.
  func transport(
    over client: NIOHTTPClient,
    replaying recorded: Cassette?,
    _ files: ProtoFileSet
  ) throws -> CassetteTransport? {
    if let recorded { return try CassetteTransport(recorded) }
    guard self.recordPath != nil else { return nil }
    let cassette = try CassetteFile.make(files, self.redaction, maximumSize: 256 << 20)
    return try CassetteTransport(cassette, over: client, mode: .record)
  }

  /// Writes the cassette after the call.
  func finish(_ transport: CassetteTransport?) throws {
    guard let transport, let path = self.recordPath else { return }
    try CassetteFile(path: path).write(transport.cassette)
  }
}
