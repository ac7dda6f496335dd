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
  /// Why the server did not give an import that was requested.
  private var lost: [String: String] = [:]

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
      for name in file.dependency where !self.names.contains(name) && self.lost[name] == nil {
        self.missing[name] = file.name
      }
    }
    return names
  }

  /// Adds the answer to a request for an import.
  ///
  /// - Throws: ``ConnectError`` if the answer says more than that the server lacks the file: a limit, or a refusal that
  ///   other credentials or a later time may change.
  mutating func add(
    _ answer: Grpc_Reflection_V1_ServerReflectionResponse,
    for file: (name: String, importer: String)
  ) throws(ConnectError) {
    switch answer.messageResponse {
    case .fileDescriptorResponse(let response):
      // Otherwise the import would be requested for ever.
      if try !self.add(response).contains(file.name) { self.lose(file.name, "other files came in its place") }
    case .errorResponse(let error):
      let failure = ConnectError(error, for: "\(file.name), which \(file.importer) imports")
      guard Self.isAboutFile(failure) else { throw failure }
      self.lose(file.name, error.errorMessage.isEmpty ? failure.code.name : error.errorMessage)
    default:
      self.lose(file.name, "the answer has no file")
    }
  }

  /// The server does not have an import. That matters only if a type in it is needed.
  mutating func lose(_ name: String, _ reason: String) {
    self.lost[name] = reason
  }

  /// Whether a request for a file failed because of the file. Other failures concern the caller, or the moment.
  static func isAboutFile(_ error: ConnectError) -> Bool {
    switch error.code {
    case .unknown, .invalidArgument, .notFound, .failedPrecondition, .outOfRange, .unimplemented,
      .internalError, .dataLoss:
      true
    default: false
    }
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
    let set: ProtoFileSet
    do {
      set = try ProtoFileSet(self.files)
    } catch {
      guard error.code == .invalidArgument else { throw error }
      // The error is the server's fault, not the caller's.
      throw .unusable("files that cannot be used: \(error.message ?? "")")
    }
    guard let need = MissingImports.firstNeed(in: set.files) else { return set }
    let reason = self.lost[need.name].map { " (\($0))" } ?? ""
    let names = "\(need.name), which \(need.importer) imports for the type \(need.type)"
    throw ConnectError(
      code: .internalError,
      message: "the server's reflection lacks \(ProtoText.comment(names + reason)); "
        + "use a descriptor set or proto files"
    )
  }

  static func over(_ what: String) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: "the server's reflection gave \(what): that is over the limit"
    )
  }
}
