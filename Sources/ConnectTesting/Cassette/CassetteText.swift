internal import Connect
internal import ConnectChannels
package import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What the file of a cassette says, and how it is read and written.
package enum CassetteText {
  private static let formatVersion = 1
  /// The depth of messages, and of what is around them.
  private static let maximumDepth = JSONParser.maximumDepth + 8

  // MARK: Content

  /// The calls, and the types of their messages in base64.
  ///
  /// - Parameters:
  ///   - name: For errors.
  ///   - limit: The largest body of a call, in bytes.
  /// - Throws: ``CassetteError`` with the place that is wrong.
  static func parse(
    _ text: String,
    named name: String,
    limit: Int
  ) throws(CassetteError) -> (exchanges: [RecordedExchange], schema: String?) {
    let value: JSONValue
    do throws(JSONParser.Failure) {
      value = try JSONParser.parse(text, maximumDepth: Self.maximumDepth)
    } catch {
      throw CassetteError(place: "\(name):\(error.line):\(error.column)", problem: error.problem)
    }
    do throws(ServiceConfigError) {
      let root = JSONNode(value)
      let schema = try root.member("schema")?.string()
      try root.expectMembers(["cassette", "exchanges", "schema"])
      let version = try root.required("cassette")
      guard try version.integer(in: 1...Int.max) == Self.formatVersion else {
        throw version.error("is a version that is not known; this one knows \(Self.formatVersion)")
      }
      var exchanges: [RecordedExchange] = []
      for node in try root.required("exchanges").elements() {
        exchanges.append(try RecordedExchange(node, limit: limit))
      }
      return (exchanges, schema)
    } catch {
      throw CassetteError(
        place: error.path.isEmpty ? name : "\(name): \(error.path)",
        problem: error.problem
      )
    }
  }

  /// The ``Cassette/schema`` in a text. Nothing else is read.
  package static func schema(in text: String) -> ByteBuffer? {
    guard case .object(let members) = try? JSONParser.parse(text, maximumDepth: Self.maximumDepth),
      case .string(let schema) = members.first(where: { $0.name == "schema" })?.value
    else { return nil }
    return Base64.decode(schema)
  }

  /// - Parameter hasTimes: Whether it has the times of what happens.
  static func make(_ exchanges: [RecordedExchange], schema: String?, hasTimes: Bool) -> String {
    let keyed = exchanges.enumerated().map { index, exchange in
      (key: [exchange.path, exchange.wire] + exchange.messages.map(\.line), index: index, exchange: exchange)
    }
    let sorted = keyed.sorted { one, two in
      one.key == two.key ? one.index < two.index : one.key.lexicographicallyPrecedes(two.key)
    }
    var root: [String: JSONValue] = [
      "cassette": .number("\(Self.formatVersion)"),
      "exchanges": .array(sorted.map { $0.exchange.json(hasTimes: hasTimes) }),
    ]
    if let schema { root["schema"] = .string(schema) }
    return JSONValue.members(root).text() + "\n"
  }

  // MARK: Files

  /// - Throws: ``CassetteError`` if there is no such file, if it is too large, or if it is no text.
  package static func read(_ path: String, limit: Int) throws(CassetteError) -> String {
    guard FileManager.default.fileExists(atPath: path) else {
      throw CassetteError(
        place: path,
        problem: "there is no such cassette; \(CassetteTransport.Mode.record.advice)"
      )
    }
    do {
      let attribute = try FileManager.default.attributesOfItem(atPath: path)[.size]
      let size = (attribute as? UInt64).map { Int(clamping: $0) } ?? attribute as? Int ?? 0
      guard size <= limit else {
        throw CassetteError(
          place: path,
          problem: "has \(size) bytes, which is over the configuration's maximumSize of \(limit)"
        )
      }
      let data = try Data(contentsOf: URL(filePath: path))
      guard let text = String(validating: data, as: UTF8.self) else {
        throw CassetteError(place: path, problem: "is not UTF-8")
      }
      return text
    } catch let error as CassetteError {
      throw error
    } catch {
      throw CassetteError(place: path, problem: "cannot be read: \(error)")
    }
  }

  /// - Throws: ``CassetteError`` if the file cannot be written. The file then stays as it was.
  static func write(_ text: String, to path: String) throws(CassetteError) {
    // The file that a link leads to is replaced, and keeps its permissions.
    let url = URL(filePath: path).resolvingSymlinksInPath()
    let permissions = try? FileManager.default.attributesOfItem(atPath: url.path(percentEncoded: false))[
      .posixPermissions
    ]
    do {
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try Data(text.utf8).write(to: url, options: .atomic)
      if let permissions {
        try FileManager.default.setAttributes(
          [.posixPermissions: permissions],
          ofItemAtPath: url.path(percentEncoded: false)
        )
      }
    } catch {
      throw CassetteError(place: path, problem: "cannot be written: \(error)")
    }
  }
}
