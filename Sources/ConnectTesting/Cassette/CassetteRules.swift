internal import Connect
internal import NIOCore

/// A cassette's configuration, checked: makes payloads of bodies, and takes out what is secret.
struct CassetteRules: Sendable {
  let configuration: Cassette.Configuration
  private let fields: [FieldPath]
  private let methodFields: [String: [FieldPath]]
  private let secretHeaders: Set<String>
  private let keptBinaryHeaders: Set<String>
  private let omittedHeaders: Set<String>

  init(_ configuration: Cassette.Configuration) throws(CassetteError) {
    self.configuration = configuration
    let redaction = configuration.redaction
    self.fields = try Self.paths(redaction.fields)
    var methodFields: [String: [FieldPath]] = [:]
    for (method, paths) in redaction.methodFields { methodFields[method] = try Self.paths(paths) }
    self.methodFields = methodFields
    self.secretHeaders = Set(redaction.headers.map { $0.lowercased() })
    self.keptBinaryHeaders = Set(redaction.keptBinaryHeaders.map { $0.lowercased() })
    self.omittedHeaders = Set(configuration.omittedHeaders.map { $0.lowercased() })
  }

  private static func paths(_ texts: [String]) throws(CassetteError) -> [FieldPath] {
    var paths: [FieldPath] = []
    for text in texts { paths.append(try FieldPath(text)) }
    return paths
  }

  // MARK: Paths

  private func paths(of method: String) -> [FieldPath] { self.fields + (self.methodFields[method] ?? []) }

  /// Fails for paths that fit no field.
  ///
  /// - Parameter found: The paths that messages had.
  func checkPaths(found: Set<String>) throws(CassetteError) {
    let methods = self.configuration.messages.methods
    let all =
      self.fields.map { ($0, methods) }
      + self.methodFields.flatMap { method, paths in
        paths.map { ($0, methods.filter { $0.key == method }) }
      }
    for (path, methods) in all.sorted(by: { $0.0.text < $1.0.text }) where !found.contains(path.text) {
      let forms = methods.values.flatMap { [$0.request, $0.response] }
      guard !forms.contains(where: { $0.knowsFields && path.isKnown(to: $0) }) else { continue }
      throw CassetteError(
        place: "redaction",
        problem: "no message that is known or was recorded has the field \"\(path.text)\"; is its name right?"
      )
    }
  }

  /// The paths that the messages of a call have.
  func paths(in exchange: RecordedExchange) -> Set<String> {
    let paths = self.paths(of: exchange.path)
    var found: Set<String> = []
    for part in exchange.parts {
      let payload: Payload
      switch part.event {
      case .send(let message), .receive(let message): payload = message
      default: continue
      }
      guard case .json(var value) = payload.content else { continue }
      for path in paths { path.redact(&value, with: .placeholder) { _ in found.insert(path.text) } }
    }
    return found
  }

  // MARK: Messages

  func pool(named name: String?) -> (any CompressionPool)? {
    guard let name else { return nil }
    return self.configuration.compressions.first { $0.hasName(name) }
  }

  func form(of method: String, _ side: MessageSide) -> MessageForm? {
    self.configuration.messages.methods[method]?[side]
  }

  /// The payload of a message.
  ///
  /// - Parameters:
  ///   - flags: The flags of its envelope.
  ///   - encoding: The compression of messages whose flags say that they are compressed.
  /// - Throws: ``CassetteError`` if something has to be redacted, and cannot be.
  func payload(
    of bytes: ByteBuffer,
    flags: UInt8,
    encoding: String?,
    codec: String?,
    method: String,
    side: MessageSide,
    _ secrets: inout Secrets
  ) throws(CassetteError) -> Payload {
    guard let plain = self.decompressed(bytes, flags: flags, encoding: encoding) else {
      return Payload(content: .bytes(try self.opaque(bytes, method, side, secrets)), flags: flags)
    }
    let isCompressed = flags & Envelope.compressedFlag != 0 && bytes.readableBytes > 0
    let content: Payload.Content
    let form = self.form(of: method, side)
    let hasPaths = !self.paths(of: method).isEmpty
    if codec == "json", let value = Self.parse(plain) {
      content = .json(try self.redacted(value, form, isStrict: false, method, side, &secrets).sorted)
    } else if codec == "proto", let form, let (value, isWhole) = form.json(of: plain), isWhole || hasPaths {
      content = .json(try self.redacted(value, form, isStrict: true, method, side, &secrets).sorted)
    } else {
      content = .bytes(try self.opaque(plain, method, side, secrets))
    }
    return Payload(
      content: content,
      flags: isCompressed ? flags & ~Envelope.compressedFlag : flags,
      isCompressed: isCompressed
    )
  }

  /// The decompressed bytes; nil if they cannot be decompressed.
  func decompressed(_ bytes: ByteBuffer, flags: UInt8, encoding: String?) -> ByteBuffer? {
    guard flags & Envelope.compressedFlag != 0, bytes.readableBytes > 0 else { return bytes }
    return try? self.pool(named: encoding)?.decompress(
      bytes,
      maximumSize: self.configuration.maximumBodySize
    )
  }

  static func parse(_ bytes: ByteBuffer) -> JSONValue? {
    guard let text = String(validating: bytes.readableBytesView, as: UTF8.self) else { return nil }
    return try? JSONParser.parse(text)
  }

  /// Passes on bytes of unknown content. Fails if they may have something to redact.
  private func opaque(
    _ bytes: ByteBuffer,
    _ method: String,
    _ side: MessageSide,
    _ secrets: Secrets
  ) throws(CassetteError) -> ByteBuffer {
    let hasPaths = !self.paths(of: method).isEmpty && bytes.readableBytes > 0
    guard hasPaths || secrets.stand(in: bytes) else { return bytes }
    throw CassetteError(
      place: method,
      problem: "fields of the \(side.rawValue) cannot be redacted, since its message is not known as JSON: "
        + "add the method to the configuration's messages, and the compression to its compressions"
    )
  }

  private func redacted(
    _ value: JSONValue,
    _ form: MessageForm?,
    isStrict: Bool,
    _ method: String,
    _ side: MessageSide,
    _ secrets: inout Secrets
  ) throws(CassetteError) -> JSONValue {
    let paths = self.paths(of: method)
    let attempts: [(fields: FieldPath.Replacement, copies: FieldPath.Replacement)] = [
      (.placeholder, .placeholder), (.absence, .placeholder), (.absence, .absence),
    ]
    for attempt in attempts {
      var result = value
      for path in paths {
        path.redact(&result, with: attempt.fields) { secrets.add($0, at: path) }
      }
      result = secrets.removed(from: result, with: attempt.copies)
      if result == value { return value }
      secrets.hasChangedMessages = true
      if form?.accepts(result, isStrict: isStrict) != false { return result }
    }
    throw CassetteError(
      place: method,
      problem: "the \(side.rawValue) is no message of its type any more once its fields are redacted"
    )
  }

  // MARK: Headers

  /// Headers as they go into the file.
  func redacted(_ headers: Headers, _ secrets: inout Secrets) -> Headers {
    let redaction = self.configuration.redaction
    var result = Headers()
    for field in headers where !self.omittedHeaders.contains(field.name) {
      // Connect's unary responses have their trailers in front.
      let prefix = "trailer-"
      let name = field.name.hasPrefix(prefix) ? String(field.name.dropFirst(prefix.count)) : field.name
      let keepsError = redaction.keepsErrorMessages && redaction.keepsErrorDetails
      if name == "grpc-status-details-bin", !keepsError { continue }
      let isBinary = name.hasSuffix("-bin")
      if self.secretHeaders.contains(name) || isBinary && !self.keptBinaryHeaders.contains(name) {
        secrets.add(header: name, field.value, isBinary: isBinary)
        result.add(name: field.name, value: FieldPath.placeholder)
      } else if name == "grpc-message", !redaction.keepsErrorMessages {
        result.add(name: field.name, value: FieldPath.placeholder)
      } else {
        result.append(field)
      }
    }
    return secrets.removed(from: result)
  }

  // MARK: Errors

  /// The body of a response that is no message: an error in JSON, or any text.
  ///
  /// - Parameters:
  ///   - isConnect: Whether JSON may be an error. Clients show the text of other bodies.
  ///   - isEnd: Whether it is the end of a Connect stream, which has the error and metadata.
  func errorContent(
    _ bytes: ByteBuffer,
    isConnect: Bool,
    isEnd: Bool,
    _ secrets: inout Secrets
  ) -> Payload.Content {
    guard isConnect, let value = Self.parse(bytes), case .object(var members) = value,
      isEnd || members.contains(where: { ["code", "message", "details"].contains($0.name) })
    else {
      guard let text = String(validating: bytes.readableBytesView, as: UTF8.self) else {
        guard secrets.stand(in: bytes) || !self.configuration.redaction.keepsErrorMessages else {
          return .bytes(bytes)
        }
        secrets.hasChangedMessages = true
        return .text(FieldPath.placeholder)
      }
      let keepsText = self.configuration.redaction.keepsErrorMessages
      let result = keepsText ? secrets.removed(from: text) : FieldPath.placeholder
      if result != text { secrets.hasChangedMessages = true }
      return .text(result)
    }
    if isEnd {
      for index in members.indices {
        switch (members[index].name, members[index].value) {
        case ("error", .object(let error)): members[index].value = .object(self.redactedError(error))
        case ("metadata", .object(let metadata)):
          members[index].value = .object(self.redactedMetadata(metadata, &secrets))
        default: break
        }
      }
    } else {
      members = self.redactedError(members)
    }
    let result = secrets.removed(from: JSONValue.object(members))
    if result != value { secrets.hasChangedMessages = true }
    return .json(result.sorted)
  }

  private func redactedError(_ members: [JSONValue.Member]) -> [JSONValue.Member] {
    let redaction = self.configuration.redaction
    return members.compactMap { member in
      switch member.name {
      case "message" where !redaction.keepsErrorMessages:
        JSONValue.Member(name: member.name, value: .string(FieldPath.placeholder))
      case "details" where !redaction.keepsErrorDetails: nil
      default: member
      }
    }
  }

  private func redactedMetadata(
    _ members: [JSONValue.Member],
    _ secrets: inout Secrets
  ) -> [JSONValue.Member] {
    members.map { member in
      guard case .array(let values) = member.value else { return member }
      var fields = Headers()
      for case .string(let value) in values { fields.add(name: member.name, value: value) }
      let redacted = self.redacted(fields, &secrets)
      return JSONValue.Member(name: member.name, value: .array(redacted.map { .string($0.value) }))
    }
  }
}
