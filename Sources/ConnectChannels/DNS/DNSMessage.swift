/// A DNS message (RFC 1035, section 4), as far as a stub resolver needs it.
package struct DNSMessage: Hashable, Sendable {
  package struct Question: Hashable, Sendable {
    package var name: DNSName
    package var type: DNSRecordType
    /// 1 is IN, the internet.
    package var recordClass: UInt16 = 1
  }

  package var id: UInt16
  package var isResponse = false
  /// 0 is a standard query.
  package var opcode: UInt8 = 0
  package var isAuthoritative = false
  /// The answer did not fit into a datagram; it has to be asked for over TCP.
  package var isTruncated = false
  package var isRecursionDesired = false
  package var isRecursionAvailable = false
  package var responseCode = DNSResponseCode.noError
  package var questions: [Question] = []
  package var answers: [DNSRecord] = []
  package var authorities: [DNSRecord] = []
  /// Without OPT, which only extends the header.
  package var additional: [DNSRecord] = []
  /// The largest datagram that the sender accepts, in bytes (EDNS); nil without an OPT record.
  package var datagramSize: UInt16?

  /// The datagram size that passes nearly all networks unfragmented, in bytes: from the DNS flag day 2020.
  package static let ednsDatagramSize: UInt16 = 1_232
}

// MARK: - Decoding

extension DNSMessage {
  /// Decodes a message from a datagram, or from a TCP stream without its length prefix.
  ///
  /// The records of a truncated message are read as far as they go. Every other message has to be complete.
  ///
  /// - Returns: Nil if the bytes are no DNS message.
  package init?(decoding bytes: [UInt8]) {
    guard bytes.count <= Int(UInt16.max) else { return nil }
    var reader = DNSReader(bytes)
    guard let id = reader.uint16(), let flags = reader.uint16(), let questionCount = reader.uint16(),
      let answerCount = reader.uint16(), let authorityCount = reader.uint16(),
      let additionalCount = reader.uint16()
    else { return nil }
    self.id = id
    self.isResponse = flags & 0x8000 != 0
    self.opcode = UInt8(flags >> 11 & 0xf)
    self.isAuthoritative = flags & 0x0400 != 0
    self.isTruncated = flags & 0x0200 != 0
    self.isRecursionDesired = flags & 0x0100 != 0
    self.isRecursionAvailable = flags & 0x0080 != 0
    self.responseCode = DNSResponseCode(rawValue: flags & 0xf)
    for _ in 0..<questionCount {
      guard let name = reader.name(), let type = reader.uint16(), let recordClass = reader.uint16() else {
        return nil
      }
      self.questions.append(
        Question(name: name, type: DNSRecordType(rawValue: type), recordClass: recordClass)
      )
    }
    let isComplete =
      self.readRecords(answerCount, from: &reader, into: \.answers)
      && self.readRecords(authorityCount, from: &reader, into: \.authorities)
      && self.readRecords(additionalCount, from: &reader, into: \.additional)
    guard isComplete || self.isTruncated else { return nil }
  }

  private mutating func readRecords(
    _ count: UInt16,
    from reader: inout DNSReader,
    into section: WritableKeyPath<DNSMessage, [DNSRecord]>
  ) -> Bool {
    for _ in 0..<count {
      guard let name = reader.name(), let type = reader.uint16().map(DNSRecordType.init(rawValue:)),
        let recordClass = reader.uint16(), let ttl = reader.uint32(), let size = reader.uint16(),
        reader.remaining >= Int(size)
      else { return false }
      if type == .opt {
        guard reader.bytes(Int(size)) != nil else { return false }
        self.datagramSize = recordClass
        self.responseCode.rawValue |= UInt16(ttl >> 24) << 4
        continue
      }
      guard let data = Self.data(type, recordClass: recordClass, size: Int(size), from: &reader) else {
        return false
      }
      // With the highest bit set it counts as zero (RFC 2181, section 8).
      let timeToLive = ttl > UInt32(Int32.max) ? 0 : ttl
      self[keyPath: section].append(DNSRecord(name: name, type: type, timeToLive: timeToLive, data: data))
    }
    return true
  }

  private static func data(
    _ type: DNSRecordType,
    recordClass: UInt16,
    size: Int,
    from reader: inout DNSReader
  ) -> DNSRecord.Data? {
    let end = reader.position + size
    let data: DNSRecord.Data
    switch type {
    case _ where recordClass != 1:
      guard reader.bytes(size) != nil else { return nil }
      data = .other
    case .a, .aaaa:
      guard size == (type == .a ? 4 : 16), let address = reader.bytes(size).flatMap({ IPAddress(bytes: $0) })
      else { return nil }
      data = .address(address)
    case .cname:
      guard let name = reader.name() else { return nil }
      data = .alias(name)
    case .srv:
      // Servers should not compress the target, but some do.
      guard let priority = reader.uint16(), let weight = reader.uint16(), let port = reader.uint16(),
        let target = reader.name()
      else { return nil }
      data = .service(.init(priority: priority, weight: weight, port: port, target: target))
    case .txt:
      var strings: [[UInt8]] = []
      while reader.position < end {
        guard let string = reader.byte().flatMap({ reader.bytes(Int($0)) }) else { return nil }
        strings.append(Array(string))
      }
      data = .text(strings)
    case .https:
      data = reader.bytes(size).map { .binding(ServiceBinding(Array($0))) } ?? .other
    case .soa:
      guard reader.name() != nil, reader.name() != nil, reader.bytes(16) != nil, let minimum = reader.uint32()
      else { return nil }
      data = .authority(minimum: minimum)
    default:
      guard reader.bytes(size) != nil else { return nil }
      data = .other
    }
    return reader.position == end ? data : nil
  }
}
