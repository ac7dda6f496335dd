import Connect
import ConnectProtobufC
import NIOCore

/// The request messages of a call: JSON values of arguments, files, or standard input, one part behind the other.
struct RequestMessages {
  private enum Part {
    case text(String)
    case bytes(ByteSource)
  }

  private var parts: ArraySlice<Part> = []
  /// The part that is being read.
  private var source: ByteSource?
  private var splitter = JSONSplitter()
  private var count = 0

  /// - Parameter data: Each is JSON, `@path` for a file, or `@-` or `@` for standard input. Empty for no message at all.
  init(_ data: [String]) throws {
    var readsInput = false
    for text in data {
      switch text {
      case "@", "@-":
        guard !readsInput else {
          throw Failure.usage("standard input can be read once, and more than one -d names it")
        }
        readsInput = true
        self.parts.append(.bytes(.standardInput))
      case _ where text.hasPrefix("@"):
        self.parts.append(.bytes(try ByteSource(file: String(text.dropFirst()))))
      default:
        self.parts.append(.text(text))
      }
    }
  }

  /// The next message, as soon as it has come; nil at the end.
  mutating func next(_ descriptor: MessageDescriptor, _ types: MessageTypes) async throws -> DynamicMessage? {
    guard let json = try await self.nextValue() else { return nil }
    self.count += 1
    do {
      return try await types.message(
        descriptor,
        json: json,
        options: JSONCodingOptions(ignoreUnknownFields: false)
      )
    } catch let error as ConnectError {
      throw Failure.usage(
        "request message \(self.count) is no \(descriptor.name): \(error.message ?? "bad JSON")"
      )
    }
  }

  /// The message of a call that sends one: empty without data.
  mutating func only(_ descriptor: MessageDescriptor, _ types: MessageTypes) async throws -> DynamicMessage {
    guard let message = try await self.next(descriptor, types) else { return DynamicMessage(descriptor) }
    guard try await self.next(descriptor, types) == nil else {
      throw Failure.usage("each call takes one request, and there are several")
    }
    return message
  }

  private mutating func nextValue() async throws -> ByteBuffer? {
    do {
      while true {
        if let value = try self.splitter.next() { return value }
        if let source = self.source {
          if let bytes = try await source.next() {
            self.splitter.append(bytes)
            continue
          }
          // Not read again: a terminal would go on.
          self.source = nil
        }
        // A value ends with its part.
        if let value = self.splitter.finish() { return value }
        switch self.parts.popFirst() {
        case nil: return nil
        case .text(let text)?: self.splitter.append(ByteBuffer(string: text))
        case .bytes(let source)?: self.source = source
        }
      }
    } catch is JSONSplitter.TooLarge {
      throw Failure.usage(
        "request message \(self.count + 1) has more than \(JSONSplitter.maximumSize >> 20) MiB"
      )
    }
  }
}
