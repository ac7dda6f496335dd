import Connect
import ConnectProtobufC
import NIOCore

/// The request messages of a call: JSON values of an argument, a file, or standard input.
struct RequestMessages {
  private let source: ByteSource?
  private var splitter = JSONSplitter()
  private var isAtEnd = false
  private var count = 0

  /// - Parameter data: JSON; `@path` for a file and `@-` for standard input. Nil for no message at all.
  init(_ data: String?) throws {
    switch data {
    case nil:
      self.source = nil
    case "@-":
      self.source = .standardInput
    case let data? where data.hasPrefix("@"):
      self.source = try ByteSource(file: String(data.dropFirst()))
    case let data?:
      self.source = nil
      self.splitter.append(ByteBuffer(string: data))
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

  private mutating func nextValue() async throws -> ByteBuffer? {
    do {
      while true {
        if let value = try self.splitter.next() { return value }
        if self.isAtEnd { return self.splitter.finish() }
        guard let source = self.source, let bytes = try await source.next() else {
          self.isAtEnd = true
          continue
        }
        self.splitter.append(bytes)
      }
    } catch is JSONSplitter.TooLarge {
      throw Failure.usage(
        "request message \(self.count + 1) has more than \(JSONSplitter.maximumSize >> 20) MiB"
      )
    }
  }
}
