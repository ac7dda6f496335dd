internal import Foundation
internal import SwiftProtobuf
internal import TestSupport

typealias Kinds = Connect_Kinds_V1_Kinds

/// Random messages with fields of every kind.
struct RandomKinds {
  var random: SeededGenerator

  mutating func flip(_ outOf: Int = 2) -> Bool { Int.random(in: 0..<outOf, using: &self.random) == 0 }

  mutating func integer<I: FixedWidthInteger>(_ type: I.Type = I.self) -> I {
    switch Int.random(in: 0..<5, using: &self.random) {
    case 0: 0
    case 1: .max
    case 2: .min
    case 3: I.random(in: 0...100, using: &self.random)
    default: I.random(in: .min ... .max, using: &self.random)
    }
  }

  /// Not NaN, which is not equal to itself, and not -0, which libprotobuf-c leaves out when encoding.
  mutating func double() -> Double {
    switch Int.random(in: 0..<6, using: &self.random) {
    case 0: 0
    case 1:
      [.infinity, -.infinity, .greatestFiniteMagnitude, .leastNonzeroMagnitude, 1e20, 0.1]
        .randomElement(using: &self.random) ?? 1
    case 2: Double(Int.random(in: -1000...1000, using: &self.random))
    default: Double.random(in: -1e9...1e9, using: &self.random)
    }
  }

  mutating func float() -> Float {
    switch Int.random(in: 0..<4, using: &self.random) {
    case 0: 0
    case 1:
      [.infinity, -.infinity, .greatestFiniteMagnitude, .leastNonzeroMagnitude, 1e20, 0.1]
        .randomElement(using: &self.random) ?? 1
    default: Float.random(in: -1e9...1e9, using: &self.random)
    }
  }

  mutating func string() -> String {
    let alphabet: [Unicode.Scalar] = [
      "a", "B", "7", " ", "\"", "\\", "/", "\n", "\u{1}", "ä", "€", "😀", "\u{7f}",
    ]
    var text = ""
    for _ in 0..<Int.random(in: 0..<(self.flip(10) ? 300 : 12), using: &self.random) {
      text.unicodeScalars.append(alphabet.randomElement(using: &self.random) ?? "x")
    }
    return text
  }

  mutating func data() -> Data {
    let count = Int.random(in: 0..<(self.flip(10) ? 300 : 12), using: &self.random)
    return Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &self.random) })
  }

  mutating func shade() -> Connect_Kinds_V1_Shade {
    [.unspecified, .light, .dark, .negative, .UNRECOGNIZED(77)].randomElement(using: &self.random) ?? .light
  }

  mutating func list<T>(_ body: (inout RandomKinds) -> T) -> [T] {
    if self.flip(3) { return [] }
    let count = Int.random(in: 0..<(self.flip(10) ? 60 : 5), using: &self.random)
    return (0..<count).map { _ in body(&self) }
  }

  mutating func map<K: Hashable, V>(_ key: (inout RandomKinds) -> K, _ value: (inout RandomKinds) -> V) -> [K:
    V]
  {
    Dictionary(self.list { (key(&$0), value(&$0)) }) { first, _ in first }
  }

  mutating func kinds(depth: Int = 0) -> Kinds {
    var message = Kinds()
    if self.flip(10) { return message }
    message.aDouble = self.double()
    message.aFloat = self.float()
    message.anInt32 = self.integer()
    message.anInt64 = self.integer()
    message.aUint32 = self.integer()
    message.aUint64 = self.integer()
    message.aSint32 = self.integer()
    message.aSint64 = self.integer()
    message.aFixed32 = self.integer()
    message.aFixed64 = self.integer()
    message.anSfixed32 = self.integer()
    message.anSfixed64 = self.integer()
    message.aBool = self.flip()
    message.aString = self.string()
    message.someBytes = self.data()
    message.aShade = self.shade()
    message.plainName = self.integer()
    message.odd_Name3 = self.string()
    message.farAway = self.integer()
    message.choice = self.choice(depth: depth)
    if self.flip() { message.optionals = self.optionals(depth: depth) }
    guard depth < 3 else { return message }
    if self.flip(3) { message.nested = self.kinds(depth: depth + 1) }
    if self.flip() { message.repeated = self.repeated(depth: depth) }
    if self.flip() { message.maps = self.maps(depth: depth) }
    if self.flip() { message.wellKnown = self.wellKnown() }
    return message
  }

  private mutating func choice(depth: Int) -> Kinds.OneOf_Choice? {
    switch Int.random(in: 0..<10, using: &self.random) {
    case 0: .oneDouble(self.double())
    case 1: .oneInt32(self.integer())
    case 2: .oneUint64(self.integer())
    case 3: .oneBool(self.flip())
    case 4: .oneString(self.string())
    case 5: .oneBytes(self.data())
    case 6: .oneShade(self.shade())
    case 7: depth < 3 ? .oneNested(self.kinds(depth: depth + 1)) : nil
    case 8: .anotherString(self.string())
    default: nil
    }
  }

  private mutating func repeated(depth: Int) -> Connect_Kinds_V1_Repeated {
    var message = Connect_Kinds_V1_Repeated()
    message.doubles = self.list { $0.double() }
    message.floats = self.list { $0.float() }
    message.int32S = self.list { $0.integer() }
    message.int64S = self.list { $0.integer() }
    message.uint32S = self.list { $0.integer() }
    message.uint64S = self.list { $0.integer() }
    message.sint32S = self.list { $0.integer() }
    message.sint64S = self.list { $0.integer() }
    message.fixed32S = self.list { $0.integer() }
    message.fixed64S = self.list { $0.integer() }
    message.sfixed32S = self.list { $0.integer() }
    message.sfixed64S = self.list { $0.integer() }
    message.bools = self.list { $0.flip() }
    message.strings = self.list { $0.string() }
    message.someBytes = self.list { $0.data() }
    message.shades = self.list { $0.shade() }
    if self.flip(4) { message.nested = self.list { $0.kinds(depth: depth + 2) } }
    message.unpacked = self.list { $0.integer() }
    return message
  }

  private mutating func maps(depth: Int) -> Connect_Kinds_V1_Maps {
    var message = Connect_Kinds_V1_Maps()
    message.strings = self.map({ $0.string() }, { $0.string() })
    message.doubles = self.map({ $0.integer() }, { $0.double() })
    message.someBytes = self.map({ $0.integer() }, { $0.data() })
    message.bools = self.map({ $0.integer() }, { $0.flip() })
    message.shades = self.map({ $0.integer() }, { $0.shade() })
    if self.flip(4) { message.nested = self.map({ $0.integer() }, { $0.kinds(depth: depth + 2) }) }
    message.floats = self.map({ $0.integer() }, { $0.float() })
    message.int64S = self.map({ $0.integer() }, { $0.integer() })
    message.uint64S = self.map({ $0.integer() }, { $0.integer() })
    message.sint32S = self.map({ $0.integer() }, { $0.integer() })
    message.uint32S = self.map({ $0.integer() }, { $0.integer() })
    message.int32S = self.map({ $0.flip() }, { $0.integer() })
    return message
  }

  private mutating func optionals(depth: Int) -> Connect_Kinds_V1_Optionals {
    var message = Connect_Kinds_V1_Optionals()
    if self.flip() { message.aDouble = self.double() }
    if self.flip() { message.aFloat = self.float() }
    if self.flip() { message.anInt32 = self.integer() }
    if self.flip() { message.aUint64 = self.integer() }
    if self.flip() { message.aBool = self.flip() }
    if self.flip() { message.aString = self.string() }
    if self.flip() { message.someBytes = self.data() }
    if self.flip() { message.aShade = self.shade() }
    if depth < 3, self.flip(3) { message.nested = self.optionals(depth: depth + 1) }
    return message
  }

  private mutating func value(depth: Int = 0) -> Google_Protobuf_Value {
    switch Int.random(in: 0..<(depth < 3 ? 6 : 4), using: &self.random) {
    case 0: Google_Protobuf_Value.with { $0.nullValue = .nullValue }
    case 1: Google_Protobuf_Value(numberValue: Double.random(in: -1e6...1e6, using: &self.random))
    case 2: Google_Protobuf_Value(stringValue: self.string())
    case 3: Google_Protobuf_Value(boolValue: self.flip())
    case 4: .with { $0.listValue = .init(values: self.list { $0.value(depth: depth + 1) }) }
    default:
      .with { $0.structValue = .init(fields: self.map({ $0.string() }, { $0.value(depth: depth + 1) })) }
    }
  }

  private mutating func wellKnown() -> Connect_Kinds_V1_WellKnown {
    var message = Connect_Kinds_V1_WellKnown()
    func timestamp(_ kinds: inout RandomKinds) -> Google_Protobuf_Timestamp {
      .with {
        $0.seconds = .random(in: -62_135_596_800...253_402_300_799, using: &kinds.random)
        $0.nanos =
          [0, 5_000_000, 6000, .random(in: 0..<1_000_000_000, using: &kinds.random)]
          .randomElement(using: &kinds.random) ?? 0
      }
    }
    if self.flip() { message.timestamp = timestamp(&self) }
    if self.flip() {
      let sign: Int64 = self.flip() ? 1 : -1
      message.duration.seconds = sign * .random(in: 0...315_576_000_000, using: &self.random)
      message.duration.nanos = Int32(sign) * .random(in: 0..<1_000_000_000, using: &self.random)
    }
    if self.flip() {
      message.mask.paths = self.list { ["a_b", "c", "d.e_f"][$0.integer(UInt8.self) < 9 ? 0 : 2] }
    }
    if self.flip() { message.fields = .init(fields: self.map({ $0.string() }, { $0.value() })) }
    if self.flip() { message.value = self.value() }
    if self.flip() { message.list = .init(values: self.list { $0.value() }) }
    if self.flip() { message.empty = Google_Protobuf_Empty() }
    if self.flip() { message.aDouble = .init(self.double()) }
    if self.flip() { message.aFloat = .init(self.float()) }
    if self.flip() { message.anInt64 = .init(self.integer()) }
    if self.flip() { message.aUint64 = .init(self.integer()) }
    if self.flip() { message.anInt32 = .init(self.integer()) }
    if self.flip() { message.aUint32 = .init(self.integer()) }
    if self.flip() { message.aBool = .init(self.flip()) }
    if self.flip() { message.aString = .init(self.string()) }
    if self.flip() { message.someBytes = .init(self.data()) }
    message.values = self.list { $0.value() }
    message.timestamps = self.map({ $0.string() }, { timestamp(&$0) })
    message.strings = self.list { .init($0.string()) }
    return message
  }
}
