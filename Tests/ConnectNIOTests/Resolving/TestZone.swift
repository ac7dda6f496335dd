@testable import ConnectChannels

/// The records of a ``TestDNSServer``, by name.
struct TestZone: Sendable, ExpressibleByDictionaryLiteral {
  enum Record: Sendable {
    case a(String)
    case aaaa(String)
    case cname(String)
    case srv(priority: UInt16 = 0, weight: UInt16 = 0, port: UInt16, target: String)
    /// The strings of one record.
    case txt([String])
    /// - Parameter parameters: The bytes of each, by its key, in rising order.
    case https(priority: UInt16 = 1, target: String = ".", parameters: [(UInt16, [UInt8])])

    var type: DNSRecordType {
      switch self {
      case .a: .a
      case .aaaa: .aaaa
      case .cname: .cname
      case .srv: .srv
      case .txt: .txt
      case .https: .https
      }
    }
  }

  var records: [String: [Record]]
  /// Of all records, in seconds.
  var timeToLive: UInt32 = 60
  /// Of answers without records, in seconds.
  var negativeTimeToLive: UInt32 = 30
  /// Whether answers with SRV records bring the addresses of their targets.
  var addsAddresses = false

  init(dictionaryLiteral elements: (String, [Record])...) {
    self.records = Dictionary(uniqueKeysWithValues: elements)
  }

  /// - Returns: The answer, as a recursive server sends it; with the truncation bit and no records if it does not fit.
  func answer(to query: DNSMessage, isTCP: Bool) -> [UInt8] {
    guard let question = query.questions.first else { return [] }
    var code: UInt8 = 0
    var answers: [(name: DNSName, record: Record)] = []
    var name = question.name
    while true {
      guard let records = self.records[name.description] else {
        code = 3
        break
      }
      let matching = records.filter { $0.type == question.type }
      answers += matching.map { (name, $0) }
      guard matching.isEmpty, let alias = records.first(where: { $0.type == .cname }),
        case .cname(let target) = alias, answers.count < 20
      else { break }
      answers.append((name, alias))
      name = DNSName(target)!
    }
    let hasRecords = answers.contains { $0.record.type == question.type }
    var additional: [(name: DNSName, record: Record)] = []
    if self.addsAddresses {
      for case .srv(_, _, _, let target) in answers.map(\.record) {
        let addresses = self.records[target]?.filter { $0.type == .a || $0.type == .aaaa } ?? []
        additional += addresses.map { (DNSName(target)!, $0) }
      }
    }
    var builder = MessageBuilder(query, code: code)
    for (name, record) in answers { builder.add(record, of: name, self.timeToLive, section: 3) }
    if !hasRecords { builder.addAuthority(self.negativeTimeToLive) }
    for (name, record) in additional { builder.add(record, of: name, self.timeToLive, section: 5) }
    if !isTCP, builder.bytes.count > Int(query.datagramSize ?? 512) {
      builder = MessageBuilder(query, code: code, isTruncated: true)
    }
    return builder.bytes
  }
}

/// Writes a response (RFC 1035, section 4).
private struct MessageBuilder {
  private(set) var bytes: [UInt8] = []
  private let question: DNSName?

  init(_ query: DNSMessage, code: UInt8, isTruncated: Bool = false) {
    self.question = query.questions.first?.name
    self.add(query.id)
    self.bytes += [isTruncated ? 0x83 : 0x81, 0x80 | code]
    for count in [UInt16(query.questions.count), 0, 0, 0] { self.add(count) }
    for question in query.questions {
      self.add(question.name)
      self.add(question.type.rawValue)
      self.add(1)
    }
  }

  private mutating func add(_ number: UInt16) {
    self.bytes += [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)]
  }

  private mutating func add(_ name: DNSName) {
    for label in name.labels { self.bytes += [UInt8(label.count)] + label }
    self.bytes.append(0)
  }

  private mutating func addRecord(
    _ name: DNSName,
    _ type: DNSRecordType,
    _ timeToLive: UInt32,
    section: Int,
    _ content: (inout MessageBuilder) -> Void
  ) {
    // A pointer to the question's name, as all servers write it.
    if name == self.question { self.bytes += [0xc0, 12] } else { self.add(name) }
    self.add(type.rawValue)
    self.add(1)
    self.add(UInt16(timeToLive >> 16))
    self.add(UInt16(truncatingIfNeeded: timeToLive))
    let start = self.bytes.count
    self.add(0)
    content(&self)
    let size = self.bytes.count - start - 2
    self.bytes[start] = UInt8(size >> 8)
    self.bytes[start + 1] = UInt8(truncatingIfNeeded: size)
    let count = UInt16(self.bytes[section * 2]) << 8 + UInt16(self.bytes[section * 2 + 1]) + 1
    self.bytes[section * 2] = UInt8(count >> 8)
    self.bytes[section * 2 + 1] = UInt8(truncatingIfNeeded: count)
  }

  /// - Parameter section: The place of its count in the header: 3 for answers, 5 for additional records.
  mutating func add(_ record: TestZone.Record, of name: DNSName, _ timeToLive: UInt32, section: Int) {
    self.addRecord(name, record.type, timeToLive, section: section) { builder in
      switch record {
      case .a(let address), .aaaa(let address):
        builder.bytes += IPAddress(address)!.bytes
      case .cname(let target):
        builder.add(DNSName(target)!)
      case .srv(let priority, let weight, let port, let target):
        for number in [priority, weight, port] { builder.add(number) }
        builder.add(target == "." ? .root : DNSName(target)!)
      case .txt(let strings):
        for string in strings { builder.bytes += [UInt8(string.utf8.count)] + string.utf8 }
      case .https(let priority, let target, let parameters):
        builder.add(priority)
        builder.add(target == "." ? .root : DNSName(target)!)
        for (key, value) in parameters {
          builder.add(key)
          builder.add(UInt16(value.count))
          builder.bytes += value
        }
      }
    }
  }

  mutating func addAuthority(_ negativeTimeToLive: UInt32) {
    self.addRecord(DNSName("test")!, .soa, 900, section: 4) { builder in
      builder.bytes += [0, 0] + [UInt8](repeating: 0, count: 16)
      builder.add(UInt16(negativeTimeToLive >> 16))
      builder.add(UInt16(truncatingIfNeeded: negativeTimeToLive))
    }
  }
}
