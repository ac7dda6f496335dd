import Connect
import ConnectProtobufC
import ConnectReflection
import Foundation
import NIOCore

/// The types of a call's messages: those of the method's files, and further types that a `google.protobuf.Any` or the detail of
/// an error has. The server's reflection is asked for these when they are needed.
///
/// A failed look-up is no failure of the call: the message is shown without the type.
actor MessageTypes {
  /// How many types the reflection is asked for. The server's messages say which.
  private static let maximumLookUps = 100
  /// How often a message is decoded again, as types that were looked up have further types inside.
  private static let maximumRounds = 10
  /// Of each look-up.
  static let timeout = Duration.seconds(5)

  private var files: ProtoFileSet
  private var pool: DescriptorPool
  private var reflection: ReflectionClient?
  private var askedNames: Set<String> = []

  /// - Parameter reflection: Is asked for further types; nil if the files are all there is.
  init(_ method: CalledMethod, reflection: ReflectionClient?) {
    self.files = method.files
    self.pool = method.pool
    self.reflection = reflection
  }

  // MARK: Messages

  /// A message from JSON.
  ///
  /// - Throws: The `ConnectError` of the JSON.
  func message(
    _ descriptor: MessageDescriptor,
    json: ByteBuffer,
    options: JSONCodingOptions = JSONCodingOptions()
  ) async throws -> DynamicMessage {
    do {
      return try DynamicMessage(descriptor, jsonBytes: json, options: options)
    } catch {
      guard await self.know(TypeNames.inJSON(json)) else { throw error }
      return try DynamicMessage(self.pool.message(descriptor.name), jsonBytes: json, options: options)
    }
  }

  /// The message of an error's detail; nil if it cannot be decoded.
  func message(of detail: ConnectError.Detail) async -> DynamicMessage? {
    guard await self.know([detail.type]) else { return nil }
    return try? DynamicMessage(self.pool.message(detail.type), serializedBytes: detail.value)
  }

  /// The JSON of a message. A `google.protobuf.Any` of an unknown type has its bytes in base64.
  func json(
    _ message: DynamicMessage,
    options: JSONCodingOptions,
    emitsDefaults: Bool
  ) async throws -> ByteBuffer {
    var (text, urls) = try message.jsonWithUndecodedAny(options: options, emitsDefaults: emitsDefaults)
    for _ in 0..<Self.maximumRounds {
      guard await self.know(TypeNames.of(urls), any: true),
        let descriptor = try? self.pool.message(message.descriptor.name),
        let bytes = try? message.serializedBytes(),
        let newer = try? DynamicMessage(descriptor, serializedBytes: bytes)
      else { break }
      (text, urls) = try newer.jsonWithUndecodedAny(options: options, emitsDefaults: emitsDefaults)
    }
    return text
  }

  // MARK: Looking up

  /// Looks up those of the types that are not known.
  ///
  /// - Returns: Whether all of them are known now; with `any`, whether at least one is. False for no types.
  private func know(_ names: Set<String>, any: Bool = false) async -> Bool {
    guard !names.isEmpty else { return false }
    let missing = names.filter { !self.isKnown($0) && !self.askedNames.contains($0) }
    let asked = missing.sorted().prefix(max(Self.maximumLookUps - self.askedNames.count, 0))
    self.askedNames.formUnion(asked)
    if let reflection = self.reflection {
      for name in asked {
        do {
          self.add(try await reflection.files(containing: [name]))
        } catch let error as ConnectError where error.code == .notFound || error.code == .internalError {
          // The server lacks this type, or what it imports.
          continue
        } catch {
          // The reflection does not work any more: more questions would only take more time.
          self.reflection = nil
          break
        }
      }
    }
    return any ? names.contains(where: self.isKnown) : names.allSatisfy(self.isKnown)
  }

  private func isKnown(_ name: String) -> Bool { (try? self.pool.message(name)) != nil }

  private func add(_ other: ProtoFileSet) {
    guard let files = try? self.files.adding(other), let pool = try? files.descriptorPool() else { return }
    self.files = files
    self.pool = pool
  }
}

/// The names of the types of each `google.protobuf.Any`.
enum TypeNames {
  /// - Parameter urls: Such as `type.googleapis.com/acme.v1.User`.
  static func of(_ urls: some Sequence<String>) -> Set<String> {
    Set(
      urls.compactMap { url in
        guard let slash = url.lastIndex(of: "/") else { return nil }
        let name = url[url.index(after: slash)...]
        return name.isEmpty ? nil : String(name)
      }
    )
  }

  /// The types that a JSON text names; none if it is not valid.
  static func inJSON(_ json: ByteBuffer) -> Set<String> {
    guard String(buffer: json).contains("@type"),
      let value = try? JSONSerialization.jsonObject(
        with: Data(json.readableBytesView),
        options: .fragmentsAllowed
      )
    else { return [] }
    var urls: [String] = []
    var open: [Any] = [value]
    while let next = open.popLast() {
      switch next {
      case let object as [String: Any]:
        if let url = object["@type"] as? String { urls.append(url) }
        open += object.values
      case let array as [Any]: open += array
      default: break
      }
    }
    return self.of(urls)
  }
}
