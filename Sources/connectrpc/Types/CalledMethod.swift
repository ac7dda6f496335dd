import Connect
import ConnectProtobufC
import ConnectReflection

/// A method that is to be called, and all that is known of its types.
struct CalledMethod {
  var descriptor: MethodDescriptor
  var pool: DescriptorPool
  var files: ProtoFileSet
  /// Whether the files are those of the server's reflection.
  var isReflected: Bool

  var info: MethodInfo { self.descriptor.info }

  /// Whether the version of HTTP must allow requests and responses at the same time.
  func needsDuplex(_ server: ServerOptions) -> Bool {
    self.info.streamType == .bidirectionalStream && server.httpVersion == nil
  }

  /// Finds a method in the files of the options, else in the known files, else by the server's reflection.
  init(
    at address: ServiceAddress,
    _ schema: SchemaOptions,
    _ server: ServerOptions,
    known: ProtoFileSet? = nil
  ) async throws {
    guard let path = address.path, let service = path.split(separator: "/").first.map(String.init) else {
      throw Failure.usage("the URL names no method")
    }
    let files: ProtoFileSet
    if let local = try await schema.localFiles() ?? known {
      files = local
      self.isReflected = false
      self.pool = try Failure.local { try local.descriptorPool() }
    } else {
      files = try await Session.run(Session(host: address.host, server)) {
        try await $0.reflection().files(containing: [service])
      }
      self.isReflected = true
      self.pool = try Failure.reflected { try files.descriptorPool() }
    }
    self.files = files
    do {
      self.descriptor = try self.pool.method(path)
    } catch let error as ConnectError {
      let methods = self.pool.services.first { $0.name == service }?.methods.map {
        String($0.path.dropFirst())
      }
      let known = methods ?? files.serviceNames
      let hint = known.isEmpty ? "" : "; there are \(known.joined(separator: ", "))"
      throw Failure.usage("\(error.message ?? "there is no \(path)")\(hint)")
    }
  }

  /// The types of the method's messages, and further ones that `session` looks up, unless files of the user decide.
  func types(_ session: Session) throws -> MessageTypes {
    MessageTypes(
      self,
      reflection: self.isReflected ? try session.reflection(timeout: MessageTypes.timeout) : nil
    )
  }
}
