internal import CProtobufC

/// A message type: its fields, by number and by name.
final class MessageSchema: @unchecked Sendable {
  // Safe to share: `containsMaps` is set once, while the graph is built, before others see it.

  /// A field's name in JSON.
  struct JSONName {
    let bytes: [UInt8]
    /// The start of a member of a JSON object: `"name":`, with either name.
    let key: [UInt8]
    let originalKey: [UInt8]
  }

  /// For decoding; lives as long as the graph.
  let table: MessageTable
  let name: String
  /// The fields, ordered by number.
  let fields: FieldList
  /// The JSON names of ``fields``, with the same indices.
  let jsonNames: [JSONName]
  let isMapEntry: Bool
  let wellKnown: WellKnownType?
  /// The names of the oneofs, in the order of the proto file, and their members.
  let oneofs: [(name: String, members: [FieldSchema])]
  /// The fields by the proto file's names.
  private let byName: [String: FieldSchema]
  /// Indices of fields by all names that JSON may use.
  private let byJSONName: [String: Int]
  /// Whether a message of this type can contain a map, at any depth.
  private(set) var containsMaps = false

  /// - Parameter jsonName: Returns a field's JSON name if the proto file sets one.
  init(
    _ table: MessageTable,
    isMapEntry: Bool,
    oneofs: [(name: String, members: [Int32])],
    jsonName: (_ field: String) -> String?
  ) {
    let fields = table.fields
    let names = fields.map(\.name)
    let jsonNames = names.map { jsonName($0) ?? Self.defaultJSONName($0) }
    self.table = table
    self.name = table.name
    self.fields = fields
    self.jsonNames = zip(jsonNames, names).map { jsonName, name in
      JSONName(
        bytes: Array(jsonName.utf8),
        key: JSONWriter.key(jsonName),
        originalKey: JSONWriter.key(name)
      )
    }
    self.isMapEntry = isMapEntry && Self.isKeyAndValue(fields)
    self.oneofs = oneofs.map { oneof in
      let members = oneof.members.sorted().compactMap { number in
        fields.index(ofNumber: UInt32(bitPattern: number)).map { fields[$0] }
      }
      return (oneof.name, members)
    }
    self.byName = Dictionary(zip(names, fields)) { first, _ in first }
    self.byJSONName = Dictionary(
      zip(jsonNames, fields.indices).map { $0 } + zip(names, fields.indices).map { $0 }
    ) { json, _ in json }
    self.wellKnown = WellKnownType(rawValue: self.name).flatMap { $0.fits(fields) ? $0 : nil }
  }

  private static func isKeyAndValue(_ fields: FieldList) -> Bool {
    guard fields.map(\.number) == [1, 2], fields.allSatisfy({ !$0.isRepeated && !$0.isOneofMember }) else {
      return false
    }
    switch fields[0].kind {
    case .float, .double, .enumeration, .bytes, .message: return false
    default: return true
    }
  }

  var descriptor: MessageDescriptorPointer { self.table.descriptor }

  func field(named name: String) -> FieldSchema? { self.byName[name] }

  func field(number: UInt32) -> FieldSchema? {
    self.fields.index(ofNumber: number).map { self.fields[$0] }
  }

  /// The index of the field with this JSON name.
  func index(jsonName: String) -> Int? { self.byJSONName[jsonName] }

  /// Call only while the graph is built.
  func markAsContainingMaps() { self.containsMaps = true }

  /// protoc's lowerCamelCase: a letter after an underscore becomes upper case, and underscores are removed.
  static func defaultJSONName(_ name: String) -> String {
    var result = ""
    var isUpper = false
    for character in name.utf8 {
      if character == UInt8(ascii: "_") {
        isUpper = true
        continue
      }
      let isLowerLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(character)
      result.unicodeScalars.append(Unicode.Scalar(isUpper && isLowerLetter ? character - 32 : character))
      isUpper = false
    }
    return result
  }
}
