import Connect
import ConnectProtobufC
import ConnectReflection
import NIOCore

/// Prints messages as JSON: one in each line, or over several lines for people.
struct MessagePrinter {
  var isIndented: Bool
  /// Whether fields have their names of the proto file, in place of lowerCamelCase.
  var usesProtoNames: Bool

  func text(_ message: DynamicMessage) throws -> String {
    var options = JSONCodingOptions()
    options.preserveProtoFieldNames = self.usesProtoNames
    let json = try message.jsonBytes(options: options)
    let text = String(buffer: json)
    return self.isIndented ? PrettyJSON.indented(text) : text
  }

  func print(_ message: DynamicMessage) throws {
    Console.output(try self.text(message))
  }
}

extension ConnectError {
  /// The details, each on separate lines: as JSON if their type is known.
  func detailLines(_ pool: DescriptorPool) -> [String] {
    self.details.map { detail in
      let text: String?
      do {
        let message = try DynamicMessage(pool.message(detail.type), serializedBytes: detail.value)
        text = try MessagePrinter(isIndented: false, usesProtoNames: false).text(message)
      } catch {
        text = nil
      }
      return "\(detail.type): \(text ?? "\(detail.value.readableBytes) bytes of a type that is not known")"
    }
  }
}
