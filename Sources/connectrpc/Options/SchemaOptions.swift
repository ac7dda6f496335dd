import ArgumentParser
import Connect
import ConnectReflection
import Foundation
import NIOCore

/// The source of the types of messages: the server's reflection, unless files are given.
struct SchemaOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A descriptor set, as protoc --include_imports --descriptor_set_out and buf build -o write; may be given again.",
      valueName: "file"
    )
  )
  var schema: [String] = []

  @Option(help: ArgumentHelp("A .proto file; may be given again. Needs protoc or buf.", valueName: "file"))
  var proto: [String] = []

  @Option(
    name: [.customShort("I"), .customLong("import-path")],
    help: ArgumentHelp("Where imports of --proto are; may be given again.", valueName: "folder")
  )
  var importPaths: [String] = []

  func validate() throws {
    if !self.schema.isEmpty, !self.proto.isEmpty {
      throw ValidationError("give either --schema or --proto")
    }
    if !self.importPaths.isEmpty, self.proto.isEmpty {
      throw ValidationError("--import-path says where imports of --proto are, which is missing")
    }
  }

  /// Whether the server is not asked.
  var isLocal: Bool { !self.schema.isEmpty || !self.proto.isEmpty }

  /// The files that are given; nil if the server is to be asked.
  func localFiles() async throws -> ProtoFileSet? {
    var files: ProtoFileSet?
    for path in self.schema {
      guard let data = FileManager.default.contents(atPath: path) else {
        throw Failure.usage("cannot read the descriptor set \(path)")
      }
      do {
        let set = try ProtoFileSet(serializedFileDescriptorSet: ByteBuffer(bytes: data))
        files = try files?.adding(set) ?? set
      } catch let error as ConnectError {
        throw Failure.usage("\(path): \(error.message ?? "no descriptor set")")
      }
    }
    if let files { return files }
    guard !self.proto.isEmpty else { return nil }
    do {
      return try await ProtoFileSet.compile(self.proto, importPaths: self.importPaths)
    } catch let error as ConnectError {
      throw Failure.usage(error.message ?? "the proto files cannot be compiled")
    }
  }
}
