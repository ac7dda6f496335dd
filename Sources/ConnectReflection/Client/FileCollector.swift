internal import Connect
internal import SwiftProtobuf

/// Collects files from a server until no import is missing, within the limits.
struct FileCollector {
  typealias File = Google_Protobuf_FileDescriptorProto

  let limits: ReflectionClient.Limits
  private(set) var files: [File] = []
  private var names: Set<String> = []
  private var bytes = 0
  /// Imports that were not requested yet, each with a file that imports it.
  private var missing: [String: String] = [:]

  init(limits: ReflectionClient.Limits) {
    self.limits = limits
  }

  /// Adds the files of an answer. Files that were already added are skipped.
  ///
  /// - Returns: The names of the files in the answer.
  @discardableResult
  mutating func add(_ response: Grpc_Reflection_V1_FileDescriptorResponse) throws(ConnectError) -> [String] {
    var names: [String] = []
    for bytes in response.fileDescriptorProto {
      let file: File
      do {
        file = try File(serializedBytes: bytes, partial: true)
      } catch {
        throw .unusable("a file descriptor that does not decode")
      }
      names.append(file.name)
      // Servers send the imports of a file along with it each time.
      guard self.names.insert(file.name).inserted else { continue }
      self.bytes += bytes.count
      guard self.bytes <= self.limits.maximumBytes else {
        throw Self.over("files of more than \(self.limits.maximumBytes) bytes")
      }
      guard self.names.count <= self.limits.maximumFiles else {
        throw Self.over("more than \(self.limits.maximumFiles) files")
      }
      self.files.append(file)
      self.missing[file.name] = nil
      for name in file.dependency where !self.names.contains(name) { self.missing[name] = file.name }
    }
    return names
  }

  /// The imports to request now, each with a file that imports it; sorted.
  mutating func takeMissing() throws(ConnectError) -> [(name: String, importer: String)] {
    // Each missing import will be another file, or an error.
    guard self.names.count + self.missing.count <= self.limits.maximumFiles else {
      throw Self.over("more than \(self.limits.maximumFiles) files")
    }
    defer { self.missing = [:] }
    return self.missing.map { (name: $0.key, importer: $0.value) }.sorted { $0.name < $1.name }
  }

  func fileSet() throws(ConnectError) -> ProtoFileSet {
    do {
      return try ProtoFileSet(self.files)
    } catch {
      guard error.code == .invalidArgument else { throw error }
      // The error is the server's fault, not the caller's.
      throw .unusable("files that cannot be used: \(error.message ?? "")")
    }
  }

  static func over(_ what: String) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: "the server's reflection gave \(what): that is over the limit"
    )
  }
}
