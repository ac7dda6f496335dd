import Connect
import ConnectProtobufC
import ConnectReflection
import NIOCore

/// Prints messages as JSON: one in each line, or over several lines for people.
struct MessagePrinter {
  var isIndented: Bool
  /// Whether fields have their names of the proto file, in place of lowerCamelCase.
  var usesProtoNames: Bool
  /// Whether fields without presence are printed if they are zero or empty, too.
  var emitsDefaults = false
  /// Finds the types that are in a `google.protobuf.Any`.
  let types: MessageTypes

  func text(_ message: DynamicMessage) async throws -> String {
    var options = JSONCodingOptions()
    options.preserveProtoFieldNames = self.usesProtoNames
    let json = try await self.types.json(message, options: options, emitsDefaults: self.emitsDefaults)
    let text = String(buffer: json)
    return Console.json(self.isIndented ? JSONValue.indented(text) : text)
  }

  func print(_ message: ReceivedMessage) async throws {
    switch message {
    case .message(let message): Console.output(try await self.text(message))
    case .text(let json, let descriptor, _):
      Console.output(try await self.text(try await self.types.message(descriptor, json: json)))
    }
  }

  /// The details of an error, each on one line: as JSON if their type is known, else with their bytes in base64.
  func detailLines(of error: ConnectError) async -> [String] {
    var printer = self
    printer.isIndented = false
    var lines: [String] = []
    for detail in error.details {
      if let message = await self.types.message(of: detail), let json = try? await printer.text(message) {
        lines.append(Console.line("\(detail.type): \(json)"))
      } else {
        lines.append(Failure.line(ofUnknown: detail))
      }
    }
    return lines
  }
}
