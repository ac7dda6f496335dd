/// One question to a server, with what identifies its answer.
package struct DNSQuery: Hashable, Sendable {
  /// Random, so that nobody off the path can forge an answer (RFC 5452).
  package var id: UInt16
  package var name: DNSName
  package var type: DNSRecordType
  /// Whether the query has an OPT record. A few old servers answer those with FORMERR.
  package var usesEDNS: Bool

  package init(id: UInt16, name: DNSName, type: DNSRecordType, usesEDNS: Bool = true) {
    self.id = id
    self.name = name
    self.type = type
    self.usesEDNS = usesEDNS
  }

  /// The bytes of the query as a datagram; over TCP their length comes first (``DNSStream``).
  package var encoded: [UInt8] {
    var bytes: [UInt8] = []
    func append(_ value: UInt16) {
      bytes.append(UInt8(value >> 8))
      bytes.append(UInt8(truncatingIfNeeded: value))
    }
    append(self.id)
    // A standard query that wants recursion.
    append(0x0100)
    append(1)
    append(0)
    append(0)
    append(self.usesEDNS ? 1 : 0)
    for label in self.name.labels {
      bytes.append(UInt8(label.count))
      bytes += label
    }
    bytes.append(0)
    append(self.type.rawValue)
    append(1)
    if self.usesEDNS {
      // OPT: the root, the size of datagrams in place of the class, no flags, no options.
      bytes.append(0)
      append(DNSRecordType.opt.rawValue)
      append(DNSMessage.ednsDatagramSize)
      bytes += [0, 0, 0, 0, 0, 0]
    }
    return bytes
  }

  /// Whether the message answers this query: same id, same question. The caller has checked who sent it.
  package func isAnswered(by message: DNSMessage) -> Bool {
    guard message.isResponse, message.id == self.id, message.opcode == 0 else { return false }
    // A server that could not read the query cannot repeat its question. Some servers leave the question out of
    // truncated answers. Forging such an answer causes nothing but a query over TCP.
    if message.questions.isEmpty { return message.responseCode == .formatError || message.isTruncated }
    return message.questions == [.init(name: self.name, type: self.type)]
  }
}
