import Connect
import ConnectProtobufC
import ConnectReflection
import ConnectTesting
import Foundation

/// A cassette's file, and the types of its messages.
struct CassetteFile {
  let path: String

  /// Checks that the file can be written, and leaves it as it is.
  ///
  /// - Throws: ``Failure`` if it cannot be written.
  func checkIsWritable() throws {
    let files = FileManager.default
    var isFolder: ObjCBool = false
    if files.fileExists(atPath: self.path) {
      guard self.isFile, files.isWritableFile(atPath: self.path) else { throw self.notWritable }
      return
    }
    guard !self.path.isEmpty else { throw self.notWritable }
    // The missing folders will be made.
    var folder = self.path
    repeat {
      folder = (folder as NSString).deletingLastPathComponent
    } while !["", "/"].contains(folder) && !files.fileExists(atPath: folder)
    if folder.isEmpty { folder = "." }
    guard files.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue,
      files.isWritableFile(atPath: folder)
    else { throw self.notWritable }
  }

  private var notWritable: Failure {
    .usage("cannot write the cassette '\(self.path)': give a file in a folder that can be written")
  }

  /// Whether there is a file, or a link to one: no folder, device or pipe.
  private var isFile: Bool {
    let url = URL(filePath: self.path).resolvingSymlinksInPath()
    return (try? url.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile) ?? false
  }

  // MARK: Reading

  /// - Returns: The cassette, and the types that the options give, else those that the cassette has.
  func read(
    _ schema: SchemaOptions,
    _ redaction: RedactionOptions
  ) async throws -> (cassette: Cassette, files: ProtoFileSet?) {
    var configuration = Cassette.Configuration(redaction: redaction.redaction)
    configuration.advice = "connectrpc record makes the cassette again"
    // As large as `record` writes them.
    configuration.maximumSize = 65_536 << 20
    guard self.isFile, FileManager.default.isReadableFile(atPath: self.path) else {
      throw Failure.usage("cannot read the cassette '\(self.path)'")
    }
    let text = try CassetteText.read(self.path, limit: configuration.maximumSize)
    let files = try await schema.localFiles() ?? self.files(in: text)
    if let files { configuration.messages = try Failure.local { .init(try files.descriptorPool()) } }
    return (try Cassette(text: text, named: self.path, configuration: configuration), files)
  }

  private func files(in text: String) throws -> ProtoFileSet? {
    try Failure.local {
      try CassetteText.schema(in: text).map { try ProtoFileSet(serializedFileDescriptorSet: $0) }
    }
  }

  // MARK: Recording

  /// An empty cassette.
  ///
  /// - Parameters:
  ///   - files: The types of messages, so that these are written as JSON; they go into the file, for the replay.
  ///   - maximumSize: In bytes.
  static func make(
    _ files: ProtoFileSet?,
    _ redaction: RedactionOptions,
    maximumSize: Int
  ) throws -> Cassette {
    var configuration = Cassette.Configuration(
      redaction: redaction.redaction,
      maximumBodySize: min(64 << 20, maximumSize),
      maximumSize: maximumSize
    )
    if let files { configuration.messages = .init(try files.descriptorPool()) }
    let cassette = try Cassette(configuration: configuration)
    cassette.schema = try files?.serialized()
    // Without types, only the recorded messages can tell.
    if files != nil { try cassette.checkRedaction() }
    return cassette
  }

  /// Writes the calls that could be recorded, and prints how many.
  ///
  /// - Throws: ``Failure`` if calls could not be recorded.
  func write(_ cassette: Cassette) throws {
    try cassette.writeRecorded(to: self.path)
    let counts = cassette.methodCounts.sorted { $0.key < $1.key }
    Console.error("recorded \(Self.calls(cassette.count)) to \(self.path)")
    for (method, count) in counts { Console.error("  \(count) \(Console.line(method))") }
    if cassette.openCallCount > 0 {
      Console.error("left out \(Self.calls(cassette.openCallCount)) that had not ended")
    }
    let problems = cassette.problems
    guard let last = problems.last else { return }
    for problem in problems.dropLast() {
      Console.problem("not recorded: \(Failure.advising("\(problem)"))")
    }
    throw Failure(message: "not recorded: \(Failure.advising("\(last)"))", exitCode: 1)
  }

  static func calls(_ count: Int) -> String { "\(count) \(count == 1 ? "call" : "calls")" }
}

extension Cassette.Messages {
  /// The messages of all methods.
  init(_ pool: DescriptorPool) {
    self.init()
    for method in pool.services.flatMap(\.methods) { self.add(method.spec) }
  }
}
