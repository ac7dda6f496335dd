public import Connect
internal import NIOCore

extension Cassette {
  /// The methods whose types of messages are known, so that the file has them as JSON.
  ///
  /// ```swift
  /// Cassette.Configuration(messages: .of(UsersMethods.get, UsersMethods.list))
  /// ```
  public struct Messages: Sendable {
    private(set) var methods: [String: MethodForms] = [:]

    /// None.
    public init() {}

    /// The messages of these methods.
    public static func of<each Input: Sendable, each Output: Sendable>(
      _ methods: repeat MethodSpec<each Input, each Output>
    ) -> Messages {
      var messages = Messages()
      repeat messages.add(each methods)
      return messages
    }

    /// Adds the messages of a method.
    public mutating func add<Input, Output>(_ method: MethodSpec<Input, Output>) {
      self.methods[method.path] = MethodForms(
        request: MessageForm(method.input),
        response: MessageForm(method.output)
      )
    }
  }
}

/// The types of a method's messages.
struct MethodForms: Sendable {
  var request: MessageForm
  var response: MessageForm

  subscript(side: MessageSide) -> MessageForm { side == .request ? self.request : self.response }
}

enum MessageSide: String, Sendable {
  case request, response
}

/// A type of messages: how they become JSON, and messages again.
struct MessageForm: Sendable {
  /// Whether the type's JSON shows which fields there are: protobuf's does, that of `Codable` types does not.
  let knowsFields: Bool
  private let encode: @Sendable (ByteBuffer) throws -> (text: ByteBuffer, isWhole: Bool)
  private let decode: @Sendable (_ text: ByteBuffer, _ isStrict: Bool) throws -> ByteBuffer?

  init<Message>(_ coding: MessageCoding<Message>) {
    let exact = BinaryCodingOptions(deterministic: true)
    let sorted = JSONCodingOptions(deterministic: true)
    self.knowsFields = coding.binary != nil && coding.json != nil
    self.encode = { bytes in
      guard let binary = coding.binary, let json = coding.json else { throw Unknown() }
      let message = try binary.decode(bytes, exact)
      let text = try json.encode(message, sorted)
      // Unknown fields are not in the JSON.
      let copy = try json.decode(text, sorted)
      return (text, try binary.encode(copy, exact) == binary.encode(message, exact))
    }
    self.decode = { text, isStrict in
      guard let json = coding.json else { throw Unknown() }
      let message = try json.decode(text, JSONCodingOptions(ignoreUnknownFields: !isStrict))
      return try coding.binary?.encode(message, exact)
    }
  }

  private struct Unknown: Error {}

  /// The JSON of a message in protobuf's encoding, and whether the JSON is complete. Nil if there is no JSON for it.
  func json(of bytes: ByteBuffer) -> (value: JSONValue, isWhole: Bool)? {
    guard let (text, isWhole) = try? self.encode(bytes),
      let value = try? JSONParser.parse(String(buffer: text))
    else { return nil }
    return (value, isWhole)
  }

  /// The message in protobuf's encoding.
  ///
  /// - Throws: The type's error if the JSON is not one of its messages.
  func bytes(of json: JSONValue) throws -> ByteBuffer {
    guard let bytes = try self.decode(ByteBuffer(string: json.description), true) else { throw Unknown() }
    return bytes
  }

  /// Whether the type accepts the JSON.
  ///
  /// - Parameter isStrict: Whether it must know all fields and values.
  func accepts(_ json: JSONValue, isStrict: Bool) -> Bool {
    do {
      _ = try self.decode(ByteBuffer(string: json.description), isStrict)
      return true
    } catch {
      return false
    }
  }
}
